"""Completions and manual pages, both made from what `--help` says."""

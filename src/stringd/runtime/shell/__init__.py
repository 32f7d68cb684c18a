"""Shells: a live one per bash topic on a real terminal, and fresh ones for single commands."""

"""Timelines: the events of a run, how they are written and what can be read back."""

"""Formats that several rooms read: YAML 1.2, JSON with comments, shapes, shell lines. No I/O."""

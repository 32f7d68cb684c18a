"""File formats that several rooms read: YAML 1.2, JSON with comments, shapes of values. No I/O."""

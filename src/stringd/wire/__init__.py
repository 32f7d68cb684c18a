"""What crosses each wire: types and codecs. No I/O; imports nothing else of ours."""

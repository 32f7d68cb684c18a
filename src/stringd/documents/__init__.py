"""SFMD documents: text in, structure and text out. No I/O."""

"""Searching large buffers in place."""

from collections.abc import Sequence
from typing import Final

# Copies of this size are made where the last one was.
_STEP: Final = 65_536


def find(room: memoryview, wanted: Sequence[bytes], start: int) -> int:
    """Offset of the first of some bytes, or -1."""
    for position in range(start, len(room), _STEP):
        piece = bytes(room[position : position + _STEP])
        hits = [hit for hit in map(piece.find, wanted) if hit >= 0]
        if hits:
            return position + min(hits)
    return -1

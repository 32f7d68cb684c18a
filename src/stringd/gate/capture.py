"""A stream of output on its way to the caller: capped, held in few large blocks."""

import binascii
from collections.abc import Iterator
from typing import Final

from stringd.system.memory import large_room
from stringd.wire.gate import MAX_OUTPUT_BYTES, Blob

_HEAD_BYTES: Final = 16_384
# Counting every newline of a large output costs more than running the command did.
_COUNTED_BYTES: Final = 262_144
# Most commands say little; what the few others say goes to a block for all the rest.
# A multiple of three, as base64 takes three bytes at a time.
_FIRST_BLOCK: Final = 12_288
# What passes the cap is read all the same, so that the command is not held up.
_DROP_BYTES: Final = 65_536
# Encoded and sent a slice at a time, so the whole text never exists. A multiple of three.
_SLICE: Final = 98_304


class Capture:
    """Keeps the first bytes up to the cap; the rest is counted and dropped, never refused.

    Whoever reads fills `room()` and calls `took` with how much it was.
    """

    def __init__(self, cap: int = MAX_OUTPUT_BYTES) -> None:
        self._cap = cap
        self._blocks: list[memoryview] = []
        self._used = 0
        """Of the last block."""
        self.newlines = 0
        self.kept = 0
        self.total = 0
        self.ends_line = True
        """Whether the last line that was kept is whole."""
        self.is_open = False

    @property
    def truncated(self) -> bool:
        return self.total > self.kept

    @property
    def counted_all(self) -> bool:
        """Whether `newlines` counts all that was kept."""
        return self.kept <= _COUNTED_BYTES

    @property
    def head(self) -> bytes:
        """The beginning of what was kept."""
        return b"".join(part[:_HEAD_BYTES] for part in self.parts())[:_HEAD_BYTES]

    def room(self) -> memoryview:
        """Where the next bytes go."""
        if not self._blocks:
            self._blocks.append(memoryview(bytearray(_FIRST_BLOCK)))
        elif self._used == len(self._blocks[-1]):
            self._blocks.append(large_room(self._cap + _DROP_BYTES))
            self._used = 0
        return self._blocks[-1][self._used :]

    def took(self, count: int) -> None:
        """`count` bytes of the room were filled; what passes the cap is free again."""
        self.total += count
        count = min(count, self._cap - self.kept)
        if not count:
            return
        if self.kept < _COUNTED_BYTES:
            self.newlines += bytes(self._blocks[-1][self._used : self._used + count]).count(b"\n")
        self._used += count
        self.kept += count
        self.ends_line = self._blocks[-1][self._used - 1] == ord("\n")

    def blob(self) -> Blob:
        return Blob.from_base64(_Encoded(self))

    def parts(self) -> list[memoryview]:
        """What was kept; the size of every part but the last is a multiple of three."""
        if not self._blocks:
            return []
        return [*self._blocks[:-1], self._blocks[-1][: self._used]]


class _Encoded:
    """What a capture kept as base64, encoded again for each reader."""

    def __init__(self, capture: Capture) -> None:
        self._capture = capture

    def __iter__(self) -> Iterator[bytes]:
        for part in self._capture.parts():
            for piece in _slices(part, _SLICE):
                yield binascii.b2a_base64(piece, newline=False)


def _slices(whole: memoryview, size: int) -> Iterator[memoryview]:
    return (whole[start : start + size] for start in range(0, len(whole), size))

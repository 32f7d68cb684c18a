"""A stream of output on its way to the caller: capped, held in few large blocks."""

from collections.abc import Iterator
from typing import Final

from stringd.gate.base64 import encoded
from stringd.wire.gate import MAX_OUTPUT_BYTES, Blob

_HEAD_BYTES: Final = 16_384
# Counting every newline of a large output costs more than running the command did.
_COUNTED_BYTES: Final = 262_144
# Most commands say little; the few that say much fill blocks. Both are multiples of three.
_FIRST_BLOCK: Final = 12_288
_BLOCK: Final = 786_432
# So much is encoded at a time: its text fits where the last one was.
_SLICE: Final = 49_152


class Capture:
    """Keeps the first bytes up to the cap; the rest is counted and dropped, never refused.

    Whoever reads fills `room()` and tells `took` how much it was.
    """

    def __init__(self, cap: int = MAX_OUTPUT_BYTES) -> None:
        self._cap = cap
        self._blocks: list[bytearray] = []
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
        return b"".join(self._slices(_HEAD_BYTES))[:_HEAD_BYTES]

    def room(self) -> memoryview:
        """Where the next bytes go."""
        if not self._blocks or self._used == len(self._blocks[-1]):
            self._blocks.append(bytearray(_BLOCK if self._blocks else _FIRST_BLOCK))
            self._used = 0
        return memoryview(self._blocks[-1])[self._used :]

    def took(self, count: int) -> None:
        """`count` bytes of the room were filled; what passes the cap is free again."""
        self.total += count
        count = min(count, self._cap - self.kept)
        if not count:
            return
        if self.kept < _COUNTED_BYTES:
            self.newlines += self._blocks[-1].count(b"\n", self._used, self._used + count)
        self._used += count
        self.kept += count
        self.ends_line = self._blocks[-1][self._used - 1] == ord("\n")

    def blob(self) -> Blob:
        return Blob.from_base64(_Encoded(self))

    def slices(self) -> Iterator[memoryview]:
        """What was kept, in pieces whose sizes, but the last one's, are multiples of three."""
        return self._slices(self.kept)

    def _slices(self, wanted: int) -> Iterator[memoryview]:
        for block in self._blocks:
            size = min(self._used if block is self._blocks[-1] else len(block), wanted)
            for start in range(0, size, _SLICE):
                yield memoryview(block)[start : min(start + _SLICE, size)]
            wanted -= size


class _Encoded:
    """What a capture kept as base64, made anew for each reader and never held as a whole."""

    def __init__(self, capture: Capture) -> None:
        self._capture = capture

    def __iter__(self) -> Iterator[bytes | memoryview]:
        return map(encoded, self._capture.slices())

"""A stream of output on its way to the caller: capped, and encoded as it arrives."""

import binascii
from typing import Final

from stringd.wire.gate import MAX_OUTPUT_BYTES, Blob

_HEAD_BYTES: Final = 16_384
# Counting every newline of a large output costs more than running the command did.
_COUNTED_BYTES: Final = 262_144


class Capture:
    """Keeps the first bytes up to the cap; the rest is counted and dropped, never refused."""

    def __init__(self, cap: int = MAX_OUTPUT_BYTES) -> None:
        self._cap = cap
        self._encoded: list[bytes] = []
        self._tail = b""
        self.head = b""
        self.newlines = 0
        self.kept = 0
        self.total = 0
        self.ends_line = True
        self.is_open = False

    @property
    def truncated(self) -> bool:
        return self.total > self.kept

    @property
    def counted_all(self) -> bool:
        """Whether `newlines` counts all that was kept."""
        return self.kept <= _COUNTED_BYTES

    def add(self, data: bytes) -> None:
        self.total += len(data)
        data = data[: self._cap - self.kept]
        if not data:
            return
        if len(self.head) < _HEAD_BYTES:
            self.head += data[: _HEAD_BYTES - len(self.head)]
        if self.kept < _COUNTED_BYTES:
            self.newlines += data.count(b"\n")
        self.ends_line = data.endswith(b"\n")
        self.kept += len(data)
        self._encode(data)

    def blob(self) -> Blob:
        rest = binascii.b2a_base64(self._tail, newline=False)
        return Blob.from_base64(*self._encoded, rest)

    def _encode(self, data: bytes) -> None:
        if self._tail:
            data = self._tail + data
        # Base64 works on three bytes at a time; what is left over waits.
        whole = len(data) - len(data) % 3
        self._tail = data[whole:]
        self._encoded.append(binascii.b2a_base64(memoryview(data)[:whole], newline=False))

"""Frames of a WebSocket peer: whole short texts are read here, all others by `websockets`.

Nearly everything a client sends is one masked text frame that arrives whole. Reading it takes a
few lines; the protocol's own reader takes several times as long and is there for everything else.
"""

from collections.abc import Iterator
from typing import Final

from websockets.protocol import Event, State
from websockets.server import ServerProtocol

_WHOLE_TEXT: Final = 0x81
_FIN: Final = 0x80
_OPCODE: Final = 0x0F
_MASKED: Final = 0x80
_SIZE: Final = 0x7F
_TWO_BYTES: Final = 126
_LAST_OF_DATA: Final = 2


class FrameReader:
    """Bytes in, events out; the protocol sees every byte that is not of a whole short text."""

    def __init__(self, protocol: ServerProtocol) -> None:
        self._protocol = protocol
        # False when it is not known where frames begin: then the protocol gets everything.
        self._aligned = True
        self._start = b""
        self._owed = 0
        self._fragmented = False

    def read(self, data: bytes) -> Iterator[Event | bytes]:
        """The protocol's events, and the payload of each whole short text, in their order."""
        if self._start:
            data, self._start = self._start + data, b""
        at, end = 0, len(data)
        while at < end:
            after = self._end_of_small(data, at)
            if after and after <= end:
                yield _unmasked(data[at + 2 : at + 6], data[at + 6 : after])
                at = after
                continue
            until = self._until(data, at)
            if until:
                yield from self._handed(data[at:until])
                at = until
                continue
            first, payload, after = _bounds(data, at)
            if not after and data[at] == _WHOLE_TEXT:
                self._start = data[at:]
                return
            if not after:
                # Whether this can be a frame at all is for the protocol to say.
                self._aligned = False
                continue
            if first == _WHOLE_TEXT and payload > at and after <= end and not self._fragmented:
                yield _unmasked(data[payload - 4 : payload], data[payload:after])
                at = after
            else:
                self._note(first)
                self._owed = after - at

    def _end_of_small(self, data: bytes, at: int) -> int:
        """Where a masked text of less than 126 bytes ends; 0 for everything else."""
        if self._owed or self._fragmented or not self._aligned or data[at] != _WHOLE_TEXT:
            return 0
        size = data[at + 1] - _MASKED if at + 1 < len(data) else -1
        if self._protocol.state is State.OPEN and 0 <= size < _TWO_BYTES:
            return at + 6 + size
        return 0

    def _until(self, data: bytes, at: int) -> int:
        """Up to where the protocol gets these bytes whatever they are; 0 at the head of a frame."""
        end = len(data)
        state = self._protocol.state
        if state is State.OPEN and self._aligned:
            until = min(end, at + self._owed) if self._owed else 0
            self._owed -= until - at if until else 0
            return until
        if state is State.CONNECTING:
            blank = data.find(b"\r\n\r\n", at)
            if blank >= 0:
                return blank + 4
        self._aligned = False
        return end

    def _handed(self, data: bytes) -> list[Event]:
        self._protocol.receive_data(data)
        return self._protocol.events_received()

    def _note(self, first: int) -> None:
        if first & _OPCODE <= _LAST_OF_DATA:
            self._fragmented = not first & _FIN


def _bounds(data: bytes, at: int) -> tuple[int, int, int]:
    """The first byte of a frame, where its payload begins if it is masked, and where it ends.

    The end is 0 as long as that cannot be seen.
    """
    seen = len(data) - at
    if seen < 2:
        return 0, 0, 0
    first, second = data[at], data[at + 1]
    size, payload = second & _SIZE, at + 2
    if size >= _TWO_BYTES:
        wide = 2 if size == _TWO_BYTES else 8
        if seen < 2 + wide:
            return 0, 0, 0
        size, payload = int.from_bytes(data[payload : payload + wide], "big"), payload + wide
    if second & _MASKED:
        return first, payload + 4, payload + 4 + size
    return first, 0, payload + size


def _unmasked(mask: bytes, data: bytes) -> bytes:
    size = len(data)
    key = int.from_bytes((mask * (size // 4 + 1))[:size], "big")
    return (int.from_bytes(data, "big") ^ key).to_bytes(size, "big")

"""From the bytes of a terminal to single key presses and pastes. Pure; time is in seconds."""

import re
from enum import Enum, auto
from typing import Final

# A key that sends several bytes may arrive in pieces; a lone Escape waits this long for the rest.
ESCAPE_SECONDS: Final = 0.06
# A paste whose end never comes is over when nothing came for this long.
PASTE_SECONDS: Final = 1.0

_ESCAPE: Final = b"\x1b"
_PASTE_START: Final = b"\x1b[200~"
_PASTE_END: Final = b"\x1b[201~"
_SEQUENCE: Final = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|O[ -~]|[^\[O\x1b])")
_UNFINISHED: Final = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*|O)?\Z")


class Key(Enum):
    """What a key means while a question is on the screen."""

    YES = auto()
    NO = auto()
    NOTE = auto()
    DENY_CALLER = auto()
    GRANT = auto()
    LIST = auto()
    NEXT = auto()
    BACK = auto()
    DETAILS = auto()
    # Does nothing: an arrow sideways, a function key, anything pasted.
    NOTHING = auto()
    SILENCE = auto()


# They only move what is read, so they need no silence before them and decide nothing.
MOVING: Final = frozenset({Key.NEXT, Key.BACK, Key.DETAILS, Key.LIST, Key.NOTHING})

# Held down they might say yes to what comes next.
ALLOWING: Final = frozenset({Key.YES, Key.GRANT})

_KEYS: Final = {
    b"y": Key.YES,
    b"Y": Key.YES,
    b"n": Key.NOTE,
    b"d": Key.DENY_CALLER,
    b"g": Key.GRANT,
    b"l": Key.LIST,
    b"v": Key.NEXT,
    b" ": Key.NEXT,
    b"\x1b[B": Key.NEXT,
    b"\x1bOB": Key.NEXT,
    b"\x1b[6~": Key.NEXT,
    b"b": Key.BACK,
    b"\x1b[A": Key.BACK,
    b"\x1bOA": Key.BACK,
    b"\x1b[5~": Key.BACK,
    b"?": Key.DETAILS,
    _ESCAPE: Key.NO,
}


def classify(press: bytes | None) -> Key:
    """The meaning of a press, or of none. Keys that are not listed are a no, Enter included.

    Those that send an escape sequence do nothing: whoever presses one wants to move, not to deny.
    """
    if press is None:
        return Key.SILENCE
    return _KEYS.get(press, Key.NOTHING if press.startswith(_ESCAPE) else Key.NO)


class KeyReader:
    """Splits what a terminal sends into presses; a paste is one press that means nothing."""

    def __init__(self) -> None:
        self._rest = b""
        self._in_paste = False
        self._fed_at = 0.0

    def feed(self, data: bytes, now: float) -> list[bytes]:
        """The presses that are complete with these bytes."""
        if self._in_paste and now - self._fed_at >= PASTE_SECONDS:
            self._in_paste = False
        self._fed_at = now
        data, self._rest = self._rest + data, b""
        presses: list[bytes] = []
        while data:
            press, data = self._next(data)
            if press:
                presses.append(press)
        return presses

    def flush(self, now: float) -> list[bytes]:
        """What is left when nothing follows in time: a lone Escape is a press of its own."""
        if not self._rest or now < self._fed_at + ESCAPE_SECONDS:
            return []
        press, self._rest = self._rest, b""
        return [press]

    def due(self) -> float | None:
        """When `flush` may have something to say."""
        return self._fed_at + ESCAPE_SECONDS if self._rest else None

    def _next(self, data: bytes) -> tuple[bytes, bytes]:
        if self._in_paste:
            _, end, rest = data.partition(_PASTE_END)
            self._in_paste = not end
            return b"", rest
        if data.startswith(_PASTE_START):
            self._in_paste = True
            return _PASTE_START, data[len(_PASTE_START) :]
        if (sequence := _SEQUENCE.match(data)) is not None:
            return sequence[0], data[sequence.end() :]
        if _UNFINISHED.match(data):
            self._rest = data
            return b"", b""
        size = 1 if data.startswith(_ESCAPE) else _character_size(data)
        return data[:size], data[size:]


def _character_size(data: bytes) -> int:
    """How many bytes the first character takes; an umlaut sends two."""
    for size in (1, 2, 3, 4):
        try:
            data[:size].decode("utf-8")
        except UnicodeDecodeError:
            continue
        return size
    return 1

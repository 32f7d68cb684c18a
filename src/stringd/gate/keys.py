"""Which key presses count: none too early, none in a burst. Pure; time is an argument, in seconds.

A key that was on its way before the question could be read, or one of a paste, is no decision.
"""

from typing import Final

ARMING_SECONDS: Final = 0.4
BURST_SECONDS: Final = 0.03
_ESCAPE: Final = 0x1B


class KeyFilter:
    """Takes bytes as they arrive and gives a lone key once it has stayed alone: its first byte."""

    def __init__(self, armed_at: float) -> None:
        self._armed_at = armed_at
        self._held: int | None = None
        self._quiet_at = 0.0
        self._in_burst = False

    def feed(self, data: bytes, now: float) -> None:
        """Bytes came at this time."""
        if not data or now < self._armed_at:
            return
        if self._held is None and now >= self._quiet_at and _is_one_key(data):
            self._held = data[0]
        elif self._held != _ESCAPE:
            self._held, self._in_burst = None, True
        self._quiet_at = now + BURST_SECONDS

    def take(self, now: float) -> int | None:
        """The byte that has stayed alone long enough, once."""
        if self._held is None or now < self._quiet_at:
            return None
        byte, self._held = self._held, None
        return byte

    def burst_ended(self, now: float) -> bool:
        """Whether keys were ignored together and it is quiet again; told once."""
        if not self._in_burst or now < self._quiet_at:
            return False
        self._in_burst = False
        return True

    def due(self) -> float | None:
        """When there may be something to tell without a further key."""
        return self._quiet_at if self._held is not None or self._in_burst else None


def _is_one_key(data: bytes) -> bool:
    """Whether one key press sent all of these bytes: an arrow sends three, an umlaut two."""
    if len(data) == 1 or data[0] == _ESCAPE:
        return True
    try:
        return len(data.decode("utf-8")) == 1
    except UnicodeDecodeError:
        return False

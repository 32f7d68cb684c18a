"""How much an MCP server may send: the size of a message, and how many of them. No I/O.

Every message is parsed on the event loop, which everybody else waits for meanwhile. A server that
sends more than its share is read more slowly; one that does not stop is ended.
"""

import time
from collections.abc import Callable
from typing import Final

MAX_MESSAGE_BYTES: Final = 10 * 1024 * 1024
MAX_VALUES: Final = 100_000
"""In one message; text of any length is one value, and quick to parse."""
RATE: Final = 500.0
"""Messages a second, for as long as it likes."""
BURST: Final = 1000.0
"""Messages at once, after a pause."""
FLOOD_SECONDS: Final = 10.0
"""A server that has been sending all it may for so long is ended."""
_FEW_BYTES: Final = 256 * 1024
"""Up to this size there cannot be too many values."""


class FloodError(Exception):
    """A server sent more than it may; `str()` continues "it …"."""


def check_message(line: bytes) -> None:
    """Raises `FloodError` for a message that takes too long to parse."""
    if len(line) > MAX_MESSAGE_BYTES:
        raise too_large()
    if len(line) > _FEW_BYTES and _values(line) > MAX_VALUES:
        raise FloodError(f"sent a message of more than {MAX_VALUES:,} values")


def too_large() -> FloodError:
    """What is said of a message without an end."""
    return FloodError(f"sent a message larger than {MAX_MESSAGE_BYTES // 1024 // 1024} MiB")


def _values(line: bytes) -> int:
    """About how many values JSON text has; what is inside of strings does not count."""
    most = _separators(line)
    if most <= MAX_VALUES:
        # Finding out what is inside of strings would take ten times as long.
        return most
    plain = line.replace(b"\\\\", b"").replace(b'\\"', b"")
    pieces = plain.split(b'"', 2 * MAX_VALUES + 1)
    if len(pieces) > 2 * MAX_VALUES + 1:
        return MAX_VALUES + 1
    # Every second piece is the inside of a string.
    return _separators(b"".join(pieces[::2]))


def _separators(text: bytes) -> int:
    return text.count(b",") + text.count(b"{") + text.count(b"[")


class MessageBudget:
    """What one server may send from now on."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._left = BURST
        self._counted = clock()
        self._spent_since: float | None = None

    def spend(self) -> float:
        """Count a message. Returns for how many seconds nothing more is to be read.

        Raises `FloodError` when there was no pause for too long.
        """
        now = self._clock()
        self._left = min(BURST, self._left + (now - self._counted) * RATE) - 1
        self._counted = now
        if self._left >= BURST / 2:
            self._spent_since = None
        if self._left >= 0:
            return 0.0
        if self._spent_since is None:
            self._spent_since = now
        elif now - self._spent_since > FLOOD_SECONDS:
            raise FloodError(
                f"sent more than {RATE:g} messages a second for {FLOOD_SECONDS:g} seconds"
            )
        return -self._left / RATE

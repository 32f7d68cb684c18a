"""What runs say to everybody who follows them, written to many connections without haste.

A write costs about the same however much it carries. With a hundred watchers, one write for each
event of a run would take the loop whole; so they are written to together, and after each such round
they rest for a time that grows with their number. What comes meanwhile leaves in the same write.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Final

FEW: Final = 8
"""So many connections are written to in the next turn of the loop."""
EACH_SECONDS: Final = 0.0001
"""How long a round rests for each connection it wrote to."""
LONGEST_SECONDS: Final = 0.02


class Deliveries:
    """One for all connections of a loop."""

    __slots__ = ("_loop", "_rests_until", "_waiting")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: list[Callable[[], None]] = []
        self._rests_until = 0.0

    def add(self, write: Callable[[], None]) -> None:
        """Call this in the next round."""
        self._waiting.append(write)
        if len(self._waiting) == 1:
            self._loop.call_soon(self._begin)

    def _begin(self) -> None:
        """Everybody who is told of the same event has been added by now."""
        rest = self._rests_until - time.monotonic()
        if rest > 0 and len(self._waiting) > FEW:
            self._loop.call_later(rest, self._write)
        else:
            self._write()

    def _write(self) -> None:
        waiting, self._waiting = self._waiting, []
        rest = min(LONGEST_SECONDS, len(waiting) * EACH_SECONDS)
        self._rests_until = time.monotonic() + rest
        for write in waiting:
            self._loop.call_soon(write)

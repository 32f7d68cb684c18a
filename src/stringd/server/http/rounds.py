"""Work that waits its turn, so that what many connections ask for does not become one long turn.

The event loop looks at every connection before it looks at one again; what each does then adds up.
Whoever has much to do asks for a turn for each piece, and small requests pass in between.
"""

import asyncio
from collections import deque
from collections.abc import Callable


class Rounds:
    """One piece of work in each turn of the loop, in the order in which it was asked for."""

    __slots__ = ("_loop", "_waiting")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: deque[Callable[[], None]] = deque()

    def add(self, work: Callable[[], None]) -> None:
        """Do this in a turn of its own."""
        self._waiting.append(work)
        if len(self._waiting) == 1:
            self._loop.call_soon(self._do_one)

    def _do_one(self) -> None:
        try:
            self._waiting[0]()
        finally:
            self._waiting.popleft()
            if self._waiting:
                self._loop.call_soon(self._do_one)

"""One command at a time per topic; the next ones wait in order."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final

from stringd.runtime.errors import CallerLeftError, QueueFullError, QueueTimeoutError

MAX_WAITING: Final = 16


class TopicQueue:
    """The turn order of one topic. `take_turn()` and `leave()` bracket every command."""

    __slots__ = ("_busy", "_waiting")

    def __init__(self) -> None:
        self._busy = False
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def busy(self) -> bool:
        return self._busy

    @property
    def length(self) -> int:
        """How many commands wait."""
        return len(self._waiting)

    def take_turn(
        self, patience: float, left: Callable[[], asyncio.Future[None]] | None = None
    ) -> Awaitable[None] | None:
        """Take the turn: at once (None), or as soon as what is returned has been awaited.

        Waits at most `patience` seconds; the future of `left` says that the caller is gone.
        Raises `QueueFullError` at once, `QueueTimeoutError` and `CallerLeftError` while waiting.
        """
        place = self.enter()
        return None if place is None else self.turn(place, patience, left() if left else None)

    def enter(self) -> asyncio.Future[None] | None:
        """Take the turn now (None), or a place in line whose future resolves with the turn.

        Raises `QueueFullError` when every place is taken.
        """
        if not self._busy:
            self._busy = True
            return None
        if len(self._waiting) >= MAX_WAITING:
            raise QueueFullError
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(place)
        return place

    async def turn(
        self,
        place: asyncio.Future[None],
        patience: float,
        left: asyncio.Future[None] | None = None,
    ) -> None:
        """Return when a place in line has become the turn; `left` says that its caller is gone.

        Raises `QueueTimeoutError`, `CallerLeftError`; then, and when cancelled, the place is free.
        """
        awaited = (place,) if left is None else (place, left)
        try:
            await asyncio.wait(awaited, timeout=patience, return_when=asyncio.FIRST_COMPLETED)
            if left is not None and left.done():
                raise CallerLeftError
            if not place.done():
                raise QueueTimeoutError
        except BaseException:
            self.abandon(place)
            raise

    def abandon(self, place: asyncio.Future[None]) -> None:
        """Give up a place in line, or the turn it has just become."""
        if place in self._waiting:
            self._waiting.remove(place)
        elif place.done():
            self.leave()

    def leave(self) -> None:
        """End the running command: the first in line gets the turn."""
        if self._waiting:
            self._waiting.popleft().set_result(None)
        else:
            self._busy = False

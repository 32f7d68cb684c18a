"""One command at a time per topic; the next ones wait in order."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from stringd.runtime.errors import (
    CallerLeftError,
    QueueFullError,
    QueueTimeoutError,
    TopicClosedError,
)

MAX_WAITING: Final = 16


class TopicQueue:
    """The turn order of one topic. `take_turn()` and `leave()` bracket every command."""

    __slots__ = ("_waiting", "busy")

    def __init__(self) -> None:
        self.busy = False
        """Whether a command has the turn."""
        self._waiting: dict[asyncio.Future[bool], str] = {}
        """Places in line, first come first, with the command each is for. Their futures become
        true with the turn, and false when nothing will come of it."""

    @property
    def length(self) -> int:
        """How many commands wait."""
        return len(self._waiting)

    @property
    def waiting(self) -> list[str]:
        """The commands that wait, the next one first."""
        return list(self._waiting.values())

    def take_turn(
        self,
        patience: float,
        left: Callable[[], asyncio.Future[None]] | None = None,
        *,
        command: str = "",
    ) -> Awaitable[None] | None:
        """Take the turn: at once (None), or as soon as what is returned has been awaited.

        Waits at most `patience` seconds; the future of `left` says that the caller is gone.
        Raises `QueueFullError` at once, and `QueueTimeoutError`, `CallerLeftError` or
        `TopicClosedError` while waiting.
        """
        place = self.enter(command)
        return None if place is None else self.turn(place, patience, left() if left else None)

    def enter_free(self) -> bool:
        """Take the turn if nobody has it."""
        if self.busy:
            return False
        self.busy = True
        return True

    def enter(self, command: str = "") -> asyncio.Future[bool] | None:
        """Take the turn now (None), or a place in line whose future resolves with the turn.

        Raises `QueueFullError` when every place is taken.
        """
        if self.enter_free():
            return None
        if len(self._waiting) >= MAX_WAITING:
            raise QueueFullError
        place: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting[place] = command
        return place

    async def turn(
        self,
        place: asyncio.Future[bool],
        patience: float,
        left: asyncio.Future[None] | None = None,
    ) -> None:
        """Return when a place in line has become the turn; `left` says that its caller is gone.

        Raises `QueueTimeoutError`, `CallerLeftError`, `TopicClosedError`; then, and when
        cancelled, the place is free.
        """
        awaited: tuple[asyncio.Future[bool] | asyncio.Future[None], ...] = (place,)
        if left is not None:
            awaited = (place, left)
        try:
            await asyncio.wait(awaited, timeout=patience, return_when=asyncio.FIRST_COMPLETED)
            if left is not None and left.done():
                raise CallerLeftError
            if not place.done():
                raise QueueTimeoutError
            if not place.result():
                raise TopicClosedError
        except BaseException:
            self.abandon(place)
            raise

    def abandon(self, place: asyncio.Future[bool]) -> None:
        """Give up a place in line, or the turn it has just become."""
        if place in self._waiting:
            del self._waiting[place]
        elif place.done() and place.result():
            self.leave()

    def drop(self) -> list[str]:
        """Let nothing that waits have a turn; the commands it was."""
        dropped, self._waiting = self._waiting, {}
        for place in dropped:
            place.set_result(False)
        return list(dropped.values())

    def leave(self) -> None:
        """End the running command: the first in line gets the turn."""
        if self._waiting:
            first = next(iter(self._waiting))
            del self._waiting[first]
            first.set_result(True)
        else:
            self.busy = False

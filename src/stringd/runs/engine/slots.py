"""How many runs may work at once: the others wait, first come first served."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class RunSlots:
    """`limit` None means no limit. A run that waits for a human keeps its slot."""

    def __init__(self, limit: int | None = None) -> None:
        self._free = limit
        self._waiting: dict[str, asyncio.Future[None]] = {}

    def positions(self) -> dict[str, int]:
        """The runs that wait, each with its place in the queue."""
        return {run_id: place for place, run_id in enumerate(self._waiting, 1)}

    @asynccontextmanager
    async def hold(self, run_id: str) -> AsyncIterator[None]:
        """Keep a slot for what runs inside, once there is one."""
        await self._take(run_id)
        try:
            yield
        finally:
            self._give()

    async def _take(self, run_id: str) -> None:
        if self._free is None:
            return
        if self._free:
            self._free -= 1
            return
        turn = self._waiting[run_id] = asyncio.get_running_loop().create_future()
        try:
            await turn
        except asyncio.CancelledError:
            self._waiting.pop(run_id, None)
            if not turn.cancelled():
                # It was given a slot in the very moment it was stopped.
                self._give()
            raise

    def _give(self) -> None:
        for run_id, turn in list(self._waiting.items()):
            # One that is being stopped has not left the queue yet.
            if not turn.done():
                del self._waiting[run_id]
                turn.set_result(None)
                return
        if self._free is not None:
            self._free += 1

"""Running commands in their topic's turn, for the ways in that carry several or last long."""

import asyncio
from typing import TYPE_CHECKING

from stringd.runtime.errors import (
    QueueFullError,
    QueueTimeoutError,
    TopicClosedError,
    UnknownUserError,
)
from stringd.runtime.runtime import Answer
from stringd.wire.result import Result

if TYPE_CHECKING:
    from stringd.runtime.runtime import Runtime
    from stringd.runtime.topics.call import Caller
    from stringd.runtime.topics.session import Slot
    from stringd.wire.topic import Topic


class TopicTurns:
    """Takes the same places in line as `/exec`; what cannot run is a result too."""

    def __init__(self, runtime: "Runtime", queue_timeout: float) -> None:
        self._runtime = runtime
        self._queue_timeout = queue_timeout
        self._running: set[asyncio.Task[Result]] = set()

    async def run(self, user_id: str, topic: "Topic", text: str, caller: "Caller") -> Result:
        """Run one command. Cancelled while it waits, it never runs; once it runs, it continues."""
        slot = self._runtime.topics.slot(user_id, topic)
        beside = self._runtime.beside(slot, text, caller) if slot.queue.busy else None
        if beside is not None:
            return (await beside).result
        try:
            turn = slot.queue.take_turn(self._queue_timeout, command=text)
            if turn is not None:
                await turn
        except QueueFullError:
            return Result.error("QUEUE_FULL", slot.crowded)
        except QueueTimeoutError as error:
            return Result.error("QUEUE_TIMEOUT", str(error))
        except TopicClosedError:
            return slot.dropped(text)
        task = asyncio.ensure_future(self._execute(slot, text, caller))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return await asyncio.shield(task)

    async def _execute(self, slot: "Slot", text: str, caller: "Caller") -> Result:
        try:
            answer = self._runtime.execute(slot, text, caller)
            return (answer if isinstance(answer, Answer) else await answer).result
        except UnknownUserError as error:
            return Result.error("INVALID_TARGET", str(error))
        finally:
            self._runtime.topics.leave(slot)

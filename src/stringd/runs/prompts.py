"""Questions to the human that wait for an answer: the first valid one wins, and counts once."""

import asyncio
from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

from stringd.wire.runs.messages import RequestInput, RequestPermission, RequestQuestion

Prompt = RequestInput | RequestQuestion | RequestPermission


class Waiting(NamedTuple):
    """`frame` is the broadcast as it was sent, so that a late subscriber sees the same."""

    prompt: Prompt
    frame: bytes
    answer: asyncio.Future[str]


class PendingPrompts:
    """Inputs by agent name, first asked first answered; questions and permissions by their id."""

    def __init__(self) -> None:
        self._inputs: dict[str, deque[Waiting]] = {}
        self._by_id: dict[tuple[type, str], Waiting] = {}

    def __iter__(self) -> Iterator[Waiting]:
        for queue in self._inputs.values():
            yield from queue
        yield from self._by_id.values()

    async def wait(self, prompt: Prompt, frame: bytes) -> str:
        """Wait for the answer to a prompt that was just broadcast."""
        waiting = Waiting(prompt, frame, asyncio.get_running_loop().create_future())
        self._add(waiting)
        try:
            return await waiting.answer
        finally:
            self._remove(waiting)

    def answer_input(self, agent_name: str, text: str) -> bool:
        """Answer the agent's oldest open request. False when there is none."""
        queue = self._inputs.get(agent_name)
        return bool(queue) and self._settle(next(iter(queue or ())), text)

    def answer_question(self, request_id: str, text: str) -> bool:
        return self._answer(RequestQuestion, request_id, text)

    def permission(self, request_id: str) -> RequestPermission | None:
        """The open permission request of that id."""
        waiting = self._by_id.get((RequestPermission, request_id))
        prompt = waiting.prompt if waiting else None
        return prompt if isinstance(prompt, RequestPermission) else None

    def decide_permission(self, request_id: str, decision: str) -> bool:
        return self._answer(RequestPermission, request_id, decision)

    def _answer(self, kind: type, request_id: str, text: str) -> bool:
        waiting = self._by_id.get((kind, request_id))
        return waiting is not None and self._settle(waiting, text)

    def _settle(self, waiting: Waiting, text: str) -> bool:
        self._remove(waiting)
        if waiting.answer.done():
            return False
        waiting.answer.set_result(text)
        return True

    def _add(self, waiting: Waiting) -> None:
        if isinstance(waiting.prompt, RequestInput):
            self._inputs.setdefault(waiting.prompt.agent_name, deque()).append(waiting)
        else:
            self._by_id[type(waiting.prompt), waiting.prompt.request_id] = waiting

    def _remove(self, waiting: Waiting) -> None:
        prompt = waiting.prompt
        if not isinstance(prompt, RequestInput):
            self._by_id.pop((type(prompt), prompt.request_id), None)
            return
        queue = self._inputs.get(prompt.agent_name)
        if queue and waiting in queue:
            queue.remove(waiting)
            if not queue:
                del self._inputs[prompt.agent_name]

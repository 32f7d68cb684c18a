"""Questions to the human that wait for an answer: the first valid one wins, and counts once."""

import asyncio
from collections import deque
from collections.abc import Iterator
from typing import NamedTuple, TypeVar

from stringd.runs.engine.observer import PromptKind
from stringd.wire.runs.messages import RequestInput, RequestPermission, RequestQuestion

Prompt = RequestInput | RequestQuestion | RequestPermission
P = TypeVar("P", RequestInput, RequestQuestion, RequestPermission)


def prompt_kind(prompt: Prompt) -> PromptKind:
    if isinstance(prompt, RequestPermission):
        return "permission"
    return "question" if isinstance(prompt, RequestQuestion) else "input"


class Waiting(NamedTuple):
    """`frame` is the broadcast as it was sent, so that a late subscriber sees the same."""

    prompt: Prompt
    frame: bytes
    answer: asyncio.Future[str]


class PendingPrompts:
    """Inputs by agent name, first asked first answered; questions and permissions by their id."""

    __slots__ = ("_by_id", "_inputs")

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

    def answer_input(self, agent_name: str, text: str) -> RequestInput | None:
        """Answer the agent's oldest open request; returns it, or None when there is none."""
        queue = self._inputs.get(agent_name)
        return self._settle(queue[0], RequestInput, text) if queue else None

    def answer_question(self, request_id: str, text: str) -> RequestQuestion | None:
        return self._answer(RequestQuestion, request_id, text)

    def decide_permission(self, request_id: str, answer: str) -> RequestPermission | None:
        return self._answer(RequestPermission, request_id, answer)

    def find_permission(self, request_id: str) -> RequestPermission | None:
        waiting = self._by_id.get((RequestPermission, request_id))
        prompt = waiting.prompt if waiting else None
        return prompt if isinstance(prompt, RequestPermission) else None

    def _answer(self, kind: type[P], request_id: str, text: str) -> P | None:
        waiting = self._by_id.get((kind, request_id))
        return None if waiting is None else self._settle(waiting, kind, text)

    def _settle(self, waiting: Waiting, kind: type[P], text: str) -> P | None:
        self._remove(waiting)
        if waiting.answer.done() or not isinstance(waiting.prompt, kind):
            return None
        waiting.answer.set_result(text)
        return waiting.prompt

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

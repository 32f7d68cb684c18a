"""What an agent call had done when it was cut off, so that a resumed one repeats no side effect.

Before a tool runs, its call is recorded under a key that depends only on the place in the flow:
`<call path>#<round-trip>.<number>`. Each answer of the model that asked for tools is recorded too,
so that a resumed call goes on with the very calls it made before.
"""

from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import dataclass
from uuid import uuid4

from msgspec import UNSET

from stringd.runs.record.events import (
    ModelTurn,
    PromptAnswered,
    PromptAsked,
    PromptKind,
    TimelineEvent,
    ToolFinished,
    ToolStarted,
    ToolWaiting,
)
from stringd.runs.record.resume import EarlierPrompt, Unfinished
from stringd.runs.record.store import RunStore
from stringd.system.clock import timestamp
from stringd.wire.runs.stream import ToolResult


@dataclass
class OpenCall:
    """A tool call that is being made, and the ledger it stands in."""

    ledger: "Ledger"
    key: str
    asked: int = 0

    def prompt_key(self) -> str:
        """The name of the next prompt this call makes."""
        self.asked += 1
        return f"{self.key}?{self.asked}"


open_call: ContextVar[OpenCall | None] = ContextVar("open_call", default=None)
"""The call the present task is making; what asks on its behalf finds it here."""


class Ledger:
    """The book of one segment. What it took survives the process before the tool runs."""

    def __init__(self, store: RunStore, run_id: str, before: Unfinished) -> None:
        self._store = store
        self._run_id = run_id
        self._before = before

    def turns(self, path: str) -> list[ModelTurn]:
        """The answers an interrupted call at this path had got, oldest first."""
        return self._before.turns.get(path, [])

    def list_changes(self) -> list[ToolStarted]:
        """The calls that made the to-do list what it was, in order."""
        done = self._before.finished
        return [call for key, call in self._before.list_changes.items() if key in done]

    def steering(self, key: str) -> list[str]:
        """The texts an interrupted call had been steered with after the round-trip of that key."""
        return self._before.steering.get(key, [])

    def outcome(self, key: str) -> ToolFinished | None:
        """How a tool call of an interrupted segment ended, when it did."""
        return self._before.finished.get(key)

    def interrupted(self, key: str) -> bool:
        """Whether a tool call was begun and never ended."""
        return key in self._before.started and key not in self._before.finished

    def turn(self, turn: ModelTurn) -> None:
        self._keep(turn)

    async def begin(self, key: str, agent_name: str, tool: str, args: str, *, sure: bool) -> None:
        """Record a call before it is made; `sure` waits until it would survive a power cut."""
        event = ToolStarted(
            ts=timestamp(), key=key, agent_name=agent_name, tool_name=tool, args=args
        )
        self._keep(event)
        if sure:
            await self._sync()

    def wait(self, key: str, *, waiting: bool) -> None:
        """Record that a call asks a human first, or that it has been answered."""
        self._keep(ToolWaiting(ts=timestamp(), key=key, waiting=waiting))

    async def ask(
        self,
        key: str,
        kind: PromptKind,
        agent_name: str,
        about: str,
        send: Callable[[str], Awaitable[str]],
    ) -> str:
        """The human's answer. `send` asks under an id and waits.

        What an interrupted segment asked about the very same thing keeps its id, and is not asked
        again when it has been answered since.
        """
        before = self._before.prompts.get(key)
        if before is None or before.asked.about != about:
            before = EarlierPrompt(self._asked(key, kind, agent_name, about))
        if before.answer is not None:
            return before.answer
        request_id = before.asked.request_id
        answer = await send(request_id)
        self._keep(PromptAnswered(ts=timestamp(), request_id=request_id, answer=answer))
        return answer

    def _asked(self, key: str, kind: PromptKind, agent_name: str, about: str) -> PromptAsked:
        asked = PromptAsked(
            ts=timestamp(),
            key=key,
            request_id=str(uuid4()),
            kind=kind,
            agent_name=agent_name,
            about=about,
        )
        self._keep(asked)
        return asked

    def end(self, key: str, result: ToolResult) -> None:
        self._keep(
            ToolFinished(
                ts=timestamp(),
                key=key,
                output=result.output,
                status=result.status,
                error=result.error or UNSET,
            ),
        )

    def _keep(self, event: TimelineEvent) -> None:
        self._store.append(self._run_id, event)

    async def _sync(self) -> None:
        await self._store.sync(self._run_id)

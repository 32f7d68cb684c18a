"""What an agent call had done when it was cut off, so that a resumed one repeats no side effect.

Before a tool runs, its call is recorded under a key that depends only on the place in the flow:
`<call path>#<round-trip>.<number>`. Each answer of the model that asked for tools is recorded too,
so that a resumed call goes on with the very calls it made before.
"""

from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import NamedTuple

from msgspec import UNSET

from stringd.runs.clock import timestamp
from stringd.runs.store import RunStore
from stringd.runs.timeline import (
    AgentCall,
    AnyEvent,
    ModelTurn,
    ToolFinished,
    ToolStarted,
    ToolWaiting,
)
from stringd.wire.runs.stream import ToolResult


@dataclass
class Unfinished:
    """Calls that were begun and have no record yet: their answers and their tools, by key."""

    turns: dict[str, list[ModelTurn]] = field(default_factory=dict)
    started: set[str] = field(default_factory=set)
    finished: dict[str, ToolFinished] = field(default_factory=dict)

    def note(self, event: AnyEvent) -> None:
        """Take in one event of the timeline, in order."""
        match event:
            case ModelTurn(path=path, index=index):
                known = self.turns.setdefault(path, [])
                known[index:] = [event]
            case ToolStarted(key=key):
                self.started.add(key)
            case ToolWaiting(key=key, waiting=True):
                # Nothing happens before the answer, so it may simply be asked for again.
                self.started.discard(key)
            case ToolWaiting(key=key):
                self.started.add(key)
            case ToolFinished(key=key):
                self.finished[key] = event
            case AgentCall(path=str(path)):
                self.turns.pop(path, None)
            case _:
                pass


class OpenCall(NamedTuple):
    """A tool call that is being made, and the ledger it stands in."""

    ledger: "Ledger"
    key: str


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

    def outcome(self, key: str) -> ToolFinished | None:
        """How a tool call of an interrupted segment ended, when it did."""
        return self._before.finished.get(key)

    def interrupted(self, key: str) -> bool:
        """Whether a tool call was begun and never ended."""
        return key in self._before.started and key not in self._before.finished

    def turn(self, turn: ModelTurn) -> None:
        self._store.append(self._run_id, turn)

    async def begin(self, key: str, agent_name: str, tool: str, args: str, *, sure: bool) -> None:
        """Record a call before it is made; `sure` waits until it would survive a power cut."""
        event = ToolStarted(
            ts=timestamp(), key=key, agent_name=agent_name, tool_name=tool, args=args
        )
        self._store.append(self._run_id, event)
        if sure:
            await self._store.sync(self._run_id)

    def wait(self, key: str, *, waiting: bool) -> None:
        """Record that a call asks a human first, or that it has been answered."""
        event = ToolWaiting(ts=timestamp(), key=key, waiting=waiting)
        self._store.append(self._run_id, event)

    def end(self, key: str, result: ToolResult) -> None:
        self._store.append(
            self._run_id,
            ToolFinished(
                ts=timestamp(),
                key=key,
                output=result.output,
                status=result.status,
                error=result.error or UNSET,
            ),
        )

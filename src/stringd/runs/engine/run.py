"""A run as this process knows it: its state, its subscribers and its numbered broadcasts."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from msgspec import UNSET

from stringd.runs.agents.extensions import Registry
from stringd.runs.agents.steering import Mailbox
from stringd.runs.engine.observer import RunObserver, UnobservedRuns
from stringd.runs.engine.pending import PendingPrompts, Prompt, prompt_kind
from stringd.runs.errors import UnansweredError
from stringd.runs.guard.budget import RunLimits
from stringd.runs.guard.guards import RunGuards
from stringd.runs.mcp.definitions import ServerDefinition
from stringd.runs.mcp.servers import RunServers
from stringd.runs.record.frame_pieces import held_pieces
from stringd.runs.record.resume import Journal
from stringd.runs.record.store import RunStore
from stringd.runs.strategy.definition import Strategy
from stringd.runs.strategy.skills import Skill
from stringd.system.clock import timestamp
from stringd.wire.run_status import RunStatus
from stringd.wire.runs import encode
from stringd.wire.runs.messages import RunBroadcast
from stringd.wire.runs.prompts import prompt_id
from stringd.wire.runs.types import ConversationHistory, RunSummary


class Subscriber(Protocol):
    """A client that follows runs, as far as a run knows it."""

    def offer(self, run_id: str, seq: int, frame: bytes) -> bool: ...


@dataclass(frozen=True)
class RunSettings:
    """Where and with what a run works; a continuation inherits what it does not override."""

    strategy_path: str
    cwd: str
    model_override: str | None = None
    manifest_path: str | None = None


@dataclass
class Prepared:
    """Everything a segment needs. `kind` says which request may start it."""

    kind: Literal["new", "continuation"]
    settings: RunSettings
    strategy: Strategy
    registry: Registry
    conversation: ConversationHistory
    journal: Journal
    limits: RunLimits = field(default_factory=RunLimits)
    skills: Sequence[Skill] = ()
    servers: Mapping[str, ServerDefinition] = field(default_factory=dict)
    selection: list[str] | None = None
    mcp: RunServers | None = None


class Run:
    """One run. Until something of it is on disk its frames are held in memory."""

    # Ten thousand finished ones may stay listed.
    __slots__ = (
        "_held",
        "_observer",
        "_store",
        "begun",
        "completed_at",
        "id",
        "mailbox",
        "policies",
        "prepared",
        "prompts",
        "request_id",
        "seq",
        "servers",
        "started",
        "started_at",
        "status",
        "strategy_name",
        "subscribers",
        "task",
    )

    def __init__(
        self,
        run_id: str,
        name: str,
        store: RunStore,
        *,
        seq: int = 0,
        observer: RunObserver | None = None,
    ) -> None:
        self.id = run_id
        self.strategy_name = name
        self.status: RunStatus = "pending"
        self.started_at = timestamp()
        self.completed_at: str | None = None
        self.subscribers: dict[Subscriber, None] = {}
        self.seq = seq
        self.request_id: Any = UNSET
        self.prepared: Prepared | None = None
        self.started = False
        self.begun = False
        self.task: asyncio.Task[None] | None = None
        self.prompts = PendingPrompts()
        self.mailbox = Mailbox()
        self.servers: RunServers | None = None
        self.policies = RunGuards()
        self._store = store
        self._observer = observer or UnobservedRuns()
        self._held: list[bytes] | None = []

    @property
    def live(self) -> bool:
        return self.status in ("pending", "running")

    @property
    def persistent(self) -> bool:
        """Whether anything of the run is on disk."""
        return self._held is None

    def summary(self) -> RunSummary:
        return RunSummary(
            run_id=self.id,
            strategy_name=self.strategy_name,
            status=self.status,
            started_at=self.started_at,
            completed_at=UNSET if self.completed_at is None else self.completed_at,
        )

    def publish(self, message: RunBroadcast) -> bytes:
        """Number a broadcast, keep it, then show it to every subscriber; returns the frame."""
        self.seq += 1
        message.seq = self.seq
        message.ts = timestamp()
        raw = encode(message)
        if self._held is None:
            self._store.append_broadcast(self.id, raw)
        else:
            self._held.append(raw)
        for client in tuple(self.subscribers):
            if not client.offer(self.id, self.seq, raw):
                self.subscribers.pop(client, None)
        self._observer.said(self.strategy_name, self.status, message)
        return raw

    def recall(self, message: RunBroadcast) -> None:
        """Number and keep a broadcast of an earlier life, for those who ask what was."""
        following, self.subscribers = self.subscribers, {}
        self.publish(message)
        self.subscribers = following

    def observe(self, message: RunBroadcast) -> None:
        """Publish an event of the running segment; once it has ended, late ones are dropped."""
        if self.status == "running":
            message.request_id = self.request_id
            self.publish(message)

    async def ask(self, prompt: Prompt, seconds: float | None = None) -> str:
        """Broadcast a prompt and wait so long for its answer. Raises `UnansweredError`."""
        try:
            async with asyncio.timeout(seconds):
                return await self.prompts.wait(prompt, self.publish(prompt))
        except BaseException as error:
            kind = prompt_kind(prompt)
            self._observer.resolved(self.id, kind, prompt_id(prompt), "", None)
            if isinstance(error, TimeoutError):
                raise UnansweredError(seconds or 0) from None
            raise

    def persist(self) -> None:
        """From now on broadcasts go to the store, those held so far first."""
        held, self._held = self._held, None
        for raw in held or ():
            self._store.append_broadcast(self.id, raw)

    def history(self, from_seq: int) -> Iterator[tuple[int, bytes]]:
        """Earlier broadcasts from `from_seq` on by number, as they were sent."""
        yield from self._store.broadcasts(self.id, from_seq)
        for number, raw in enumerate(list(self._held or ()), self.seq - len(self._held or ()) + 1):
            if number >= from_seq:
                yield number, raw

    def pieces(self) -> Iterator[bytes]:
        """Earlier broadcasts as lines, in pieces that end anywhere; nothing is held between two."""
        yield from self._store.broadcast_pieces(self.id)
        yield from held_pieces(list(self._held or ()))

    def end(self, status: RunStatus) -> None:
        """Settle the state. Prompts still open are dropped with the task that waits for them."""
        self.status = status
        self.completed_at = timestamp()

    def release(self) -> None:
        """Forget what only a live run needs."""
        if self.servers is not None:
            self.servers.close()
            self.servers = None
        self.prepared = None
        self.prompts = PendingPrompts()
        self.policies = RunGuards()
        self._store.release(self.id)

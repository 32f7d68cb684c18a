"""The only writer of a timeline: every event of a run is written by a method of its recorder.

Before a tool runs, its call is recorded under a key that depends only on the place in the flow:
`<call path>#<round-trip>.<number>`. Each answer of the model that asked for tools is recorded too,
so that a resumed call continues with the very calls it made before (`record.resume` reads them).
"""

from dataclasses import dataclass
from typing import Literal, TypedDict
from uuid import uuid4

from msgspec import UNSET, UnsetType

from stringd.runs.record import events
from stringd.runs.record.store import RunStore
from stringd.system.clock import timestamp
from stringd.wire.runs.stream import ToolResult
from stringd.wire.runs.types import (
    AgentCallResult,
    ConversationRecord,
    ErrorInfo,
    RetentionEvent,
)


@dataclass(frozen=True)
class StepPlace:
    """A step of the entry flow. `agent` is None for a step that is a flow itself."""

    name: str
    flow: str
    agent: str | None
    index: int
    path: str


class _StepNames(TypedDict):
    step_name: str
    flow_name: str
    agent_name: str | UnsetType
    index: int
    path: str


def _named(step: StepPlace) -> _StepNames:
    """A step as its events name it."""
    return {
        "step_name": step.name,
        "flow_name": step.flow,
        "agent_name": step.agent or UNSET,
        "index": step.index,
        "path": step.path,
    }


class Recorder:
    """Writes one run's timeline. What it took survives the process, `sync` the machine.

    Every method raises `NotRecordedError`: then what it was to record must not happen.
    """

    def __init__(self, store: RunStore, run_id: str) -> None:
        self._store = store
        self._run_id = run_id

    async def sync(self) -> None:
        """Wait until everything written so far would survive a power cut."""
        await self._store.sync(self._run_id)

    def run_started(self, started: events.RunStarted) -> None:
        self._append(started)

    def run_ended(self, status: events.Ending, error: ErrorInfo | None = None) -> None:
        self._append(events.RunCompleted(ts=timestamp(), status=status, error=error or UNSET))

    def run_failed(self, status: events.Ending, error: ErrorInfo) -> None:
        """Record an end that happens whether it can be recorded or not; never raises."""
        ended = events.RunCompleted(ts=timestamp(), status=status, error=error)
        self._store.end(self._run_id, ended)

    def step_started(self, step: StepPlace) -> None:
        self._append(events.StepBegun(ts=timestamp(), **_named(step)))

    def step_ended(self, step: StepPlace, result: AgentCallResult) -> None:
        self._append(events.StepEnded(ts=timestamp(), **_named(step), result=result))

    def agent_call(self, record: ConversationRecord, path: str, model: str | None) -> None:
        call = events.AgentCall(ts=record.created_at, record=record, path=path)
        call.model = UNSET if model is None else model
        self._append(call)

    def retention(self, event: RetentionEvent) -> None:
        self._append(events.ConversationRetention(ts=event.created_at, event=event))

    def steering_delivered(self, agent_name: str, text: str, key: str | None) -> None:
        event = events.SteerRecorded(ts=timestamp(), agent_name=agent_name, text=text)
        event.key = key or UNSET
        self._append(event)

    def steering_accepted(self, text: str, by: events.DecidedBy) -> None:
        """Keep a text before its sender is told that it was accepted."""
        self.human_input("", text, by)

    def human_input(self, agent_name: str, text: str, by: events.DecidedBy) -> None:
        """Keep a text for an agent, and who gave it."""
        source: Literal["human", "agent"] = "human" if by.kind == "human" else "agent"
        self._append(
            events.HumanInput(
                ts=timestamp(), agent_name=agent_name, text=text, source=source, by=by
            )
        )

    def prompt_asked(
        self, key: str, kind: events.PromptKind, agent_name: str, about: str
    ) -> events.PromptAsked:
        """Record a question to the human under a new id."""
        asked = events.PromptAsked(
            ts=timestamp(),
            key=key,
            request_id=str(uuid4()),
            kind=kind,
            agent_name=agent_name,
            about=about,
        )
        self._append(asked)
        return asked

    def prompt_answered(self, request_id: str, answer: str) -> events.PromptAnswered:
        event = events.PromptAnswered(ts=timestamp(), request_id=request_id, answer=answer)
        self._append(event)
        return event

    def permission_decided(self, decided: events.PermissionDecided) -> None:
        self._append(decided)

    def model_turn(self, turn: events.ModelTurn) -> None:
        """Record an answer of the model that asks for tools, before they run."""
        self._append(turn)

    def tool_started(self, key: str, agent_name: str, tool: str, args: str) -> None:
        """Record a call before it is made; `sync` before one that must not happen twice."""
        self._append(
            events.ToolStarted(
                ts=timestamp(), key=key, agent_name=agent_name, tool_name=tool, args=args
            )
        )

    def tool_waiting(self, key: str, *, waiting: bool) -> None:
        """Record that a call asks a human first, or that it has been answered."""
        self._append(events.ToolWaiting(ts=timestamp(), key=key, waiting=waiting))

    def tool_finished(self, key: str, result: ToolResult) -> None:
        self._append(
            events.ToolFinished(
                ts=timestamp(),
                key=key,
                output=result.output,
                status=result.status,
                error=result.error or UNSET,
            )
        )

    def file_changed(self, mutation: events.ToolMutation) -> None:
        self._append(mutation)

    def _append(self, event: events.TimelineEvent) -> None:
        self._store.append(self._run_id, event)


class InnerRecorder(Recorder):
    """For a strategy inside a tool call: that call is what a resumed run looks at.

    So nothing of the inner flow is kept but the files it changed and what policies decided.
    """

    def __init__(self, outer: Recorder) -> None:
        self._outer = outer

    async def sync(self) -> None:
        pass

    def run_failed(self, status: events.Ending, error: ErrorInfo) -> None:
        pass

    def file_changed(self, mutation: events.ToolMutation) -> None:
        self._outer.file_changed(mutation)

    def permission_decided(self, decided: events.PermissionDecided) -> None:
        self._outer.permission_decided(decided)

    def _append(self, event: events.TimelineEvent) -> None:
        pass

"""The beginning of another run: what a fork keeps of a timeline and of its broadcasts. Pure.

A fork is a timeline that ends after the chosen step, so that resuming it does the rest.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

import msgspec
from msgspec import UNSET

from stringd.runs.record.events import (
    AgentCall,
    AnyEvent,
    ConversationRetention,
    HumanInput,
    ModelTurn,
    PromptAnswered,
    PromptAsked,
    RunCompleted,
    RunStarted,
    SteerRecorded,
    StepBegun,
    StepEnded,
    ToolFinished,
    ToolStarted,
    ToolWaiting,
)
from stringd.system.clock import timestamp
from stringd.wire.runs.catalog import CompletedStep, ForkOrigin
from stringd.wire.runs.types import AgentCallResult, ErrorInfo

_BELOW: Final = re.compile(r"[/#?]")
_STEP_COMPLETED: Final = b'{"type":"step_completed"'
_TEXT: Final = msgspec.json.Encoder()


class _Step(NamedTuple):
    place: int
    path: str
    name: str


class ForkPoint(NamedTuple):
    """A completed step to begin after. `nth` of that name it is, in all segments of its run."""

    origin: ForkOrigin
    start: int
    end: int
    nth: int


def completed_steps(events: Sequence[AnyEvent]) -> list[CompletedStep]:
    """The steps of the latest segment, and of those it resumed, that a fork may begin after."""
    return [
        CompletedStep(path=step.path, name=step.name, completed_at=events[step.place].ts)
        for step in _steps(events, _first(events))
    ]


def find_point(run_id: str, events: Sequence[AnyEvent], at: str) -> ForkPoint | None:
    """Where a path, or the name of a step, leads; a name is that of the last one called so."""
    start = _first(events)
    steps = _steps(events, start)
    found = next((each for each in steps if each.path == at), None)
    found = found or next((each for each in reversed(steps) if each.name == at), None)
    if found is None:
        return None
    called = [each for each in events[: found.place + 1] if isinstance(each, StepEnded)]
    return ForkPoint(
        ForkOrigin(run_id=run_id, path=found.path, step=found.name),
        start,
        found.place,
        sum(each.step_name == found.name for each in called),
    )


def forked_events(events: Sequence[AnyEvent], point: ForkPoint) -> list[AnyEvent]:
    """The timeline of the new run: earlier segments whole, of the latest what was complete."""
    origin = point.origin
    begun = events[point.start]
    assert isinstance(begun, RunStarted)
    begun = msgspec.structs.replace(begun, ts=timestamp(), forked_from=origin, resume=UNSET)
    kept = _completed(events[point.start + 1 : point.end + 1])
    ended = RunCompleted(
        ts=timestamp(),
        status="cancelled",
        error=ErrorInfo(
            code="CANCELLED",
            message=f'Forked from {origin.run_id} after step "{origin.step}". '
            "Resume it to take the next step.",
        ),
    )
    return [*events[: point.start], begun, *kept, ended]


def with_strategy(events: Sequence[AnyEvent], path: str, other: str) -> list[AnyEvent]:
    """The same events, with another file for the strategy that was at a path."""
    return [
        msgspec.structs.replace(each, strategy_path=other)
        if isinstance(each, RunStarted) and each.strategy_path == path
        else each
        for each in events
    ]


def forked_frames(frames: Iterable[bytes], point: ForkPoint, run_id: str) -> list[bytes]:
    """The broadcasts up to the chosen step, as the new run's; none where they are not kept."""
    own = msgspec.Raw(_TEXT.encode(run_id))
    left, kept = point.nth, list[bytes]()
    for frame in frames:
        fields = msgspec.json.decode(frame, type=dict[str, msgspec.Raw])
        kept.append(_TEXT.encode({**fields, "runId": own}))
        if frame.startswith(_STEP_COMPLETED):
            left -= msgspec.json.decode(fields["stepName"]) == point.origin.step
        if not left:
            return kept
    return []


def _first(events: Sequence[AnyEvent]) -> int:
    """The place of the start that the latest segment goes back to."""
    starts = [i for i, each in enumerate(events) if isinstance(each, RunStarted)]
    return next((i for i in reversed(starts) if not _resumes(events[i])), 0)


def _resumes(event: AnyEvent) -> bool:
    return isinstance(event, RunStarted) and event.resume is True


def _steps(events: Sequence[AnyEvent], start: int) -> list[_Step]:
    return [
        _Step(index, each.path, each.step_name)
        for index, each in enumerate(events)
        if index > start
        and isinstance(each, StepEnded)
        and isinstance(each.path, str)
        and isinstance(each.result, AgentCallResult)
    ]


def _completed(events: Sequence[AnyEvent]) -> list[AnyEvent]:
    """What belongs to steps that were completed by then; others begin from nothing."""
    begun = {each.path for each in events if isinstance(each, StepBegun)}
    done = {each.path for each in events if isinstance(each, StepEnded)}
    # The observer of a cycle is not in a step.
    done |= {path for each in events if (path := _call(each)) and path not in begun}
    return list(_CompletedPart(events, done))


def _call(event: AnyEvent) -> str | None:
    return _root(event.path) if isinstance(event, AgentCall) and event.path else None


def _root(place: str) -> str:
    """The step of the entry flow that a path or a key is in."""
    return _BELOW.split(place, maxsplit=1)[0]


class _CompletedPart:
    def __init__(self, events: Sequence[AnyEvent], done: Collection[object]) -> None:
        self._events = events
        self._done = done
        self._records: set[str] = set()
        self._prompts: set[str] = set()
        self._delivered = [
            each.text for each in events if isinstance(each, SteerRecorded) and self._steered(each)
        ]

    def __iter__(self) -> Iterator[AnyEvent]:
        return filter(self._keeps, self._events)

    def _keeps(self, event: AnyEvent) -> bool:
        match event:
            case RunStarted() | RunCompleted():
                return False
            case AgentCall(path=str(place), record=record):
                keeps = self._within(place)
                if keeps:
                    self._records.add(record.id)
                return keeps
            case StepBegun(path=str(place)) | StepEnded(path=str(place)) | ModelTurn(path=place):
                return self._within(place)
            case ToolStarted(key=key) | ToolWaiting(key=key) | ToolFinished(key=key):
                return self._within(key)
            case PromptAsked(key=key, request_id=id_):
                if self._within(key):
                    self._prompts.add(id_)
                return self._within(key)
            case PromptAnswered(request_id=id_):
                return id_ in self._prompts
            case ConversationRetention(event=retention):
                return self._records.issuperset(retention.superseded_record_ids)
            case SteerRecorded():
                return self._steered(event)
            case HumanInput(agent_name="", text=text):
                # Nobody took it by then: it was meant for what came after.
                return text in self._delivered
            case _:
                return True

    def _within(self, place: str) -> bool:
        return _root(place) in self._done

    def _steered(self, event: SteerRecorded) -> bool:
        return event.key is UNSET or self._within(event.key)

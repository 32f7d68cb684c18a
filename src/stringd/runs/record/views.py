"""What can be read back from a timeline: the overview, the conversation, the last error."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from msgspec import UNSET

from stringd.runs.record.events import (
    AgentCall,
    AnyEvent,
    ConversationRetention,
    RunCompleted,
    RunStarted,
)
from stringd.wire.runs.catalog import ForkOrigin
from stringd.wire.runs.types import (
    ConversationHistory,
    ConversationInput,
    ConversationRecord,
    ErrorInfo,
    ModelUsage,
    RetentionEvent,
    RunOverview,
    Usage,
)

if TYPE_CHECKING:
    from stringd.wire.run_status import RunStatus

LAST_CHARACTERS: Final = 200
"""Of what a run said last, in a list of runs."""


def apply_retention(records: list[ConversationRecord], event: RetentionEvent) -> None:
    """Mark what the event superseded and put its summary where it says, once."""
    gone = set(event.superseded_record_ids)
    summary = event.summary_record
    records[:] = [record for record in records if record.id != summary.id]
    for record in records:
        if record.id in gone:
            record.status = "superseded"
            record.superseded_by = summary.id
    before = event.insert_before_record_id
    places = [index for index, record in enumerate(records) if record.id == before]
    records.insert(places[0] if places else len(records), summary)


def latest_start(events: Sequence[AnyEvent]) -> RunStarted | None:
    """The `run_started` of the latest segment."""
    return next((event for event in reversed(events) if isinstance(event, RunStarted)), None)


def fork_origin(events: Iterable[AnyEvent]) -> ForkOrigin | None:
    """The step of another run that this one began after."""
    starts = (event.forked_from for event in events if isinstance(event, RunStarted))
    return next((each for each in starts if isinstance(each, ForkOrigin)), None)


def overview(run_id: str, events: Iterable[AnyEvent]) -> RunOverview | None:
    """A run as `list_runs` shows it, or None when nothing ever started."""
    started: RunStarted | None = None
    ended: RunCompleted | None = None
    used: dict[str, Usage] = {}
    said = ""
    for event in events:
        match event:
            case RunStarted():
                started, ended = event, None
            case RunCompleted():
                ended = event
            case AgentCall(record=record):
                model = event.model or ""
                used[model] = used.get(model, Usage()) + record.usage
                said = record.text or said
    if started is None:
        return None
    status: RunStatus = "running" if ended is None else ended.status
    return RunOverview(
        run_id=run_id,
        cwd=started.cwd,
        strategy_name=started.strategy_name,
        strategy_path=started.strategy_path,
        started_at=started.ts,
        completed_at=None if ended is None else ended.ts,
        status=status,
        interrupted=True if ended is not None and ended.interrupted else UNSET,
        usage=[
            ModelUsage(
                model=model,
                prompt_tokens=each.prompt_tokens,
                completion_tokens=each.completion_tokens,
            )
            for model, each in used.items()
        ]
        or UNSET,
        last=_last(said, ended) or UNSET,
    )


def _last(said: str, ended: RunCompleted | None) -> str:
    if ended is not None and isinstance(ended.error, ErrorInfo):
        said = ended.error.message
    text = said.strip()
    return text if len(text) <= LAST_CHARACTERS else f"{text[:LAST_CHARACTERS]}…"


def last_error(events: Sequence[AnyEvent]) -> ErrorInfo | None:
    """Why the latest segment did not complete, when it says so."""
    ended = next((e for e in reversed(events) if isinstance(e, RunCompleted | RunStarted)), None)
    return ended.error or None if isinstance(ended, RunCompleted) else None


def last_ending(events: Sequence[AnyEvent]) -> RunCompleted | None:
    """How the latest segment ended, when it did so by itself."""
    last = next((e for e in reversed(events) if isinstance(e, RunCompleted | RunStarted)), None)
    return last if isinstance(last, RunCompleted) and not last.interrupted else None


def conversation(events: Sequence[AnyEvent]) -> ConversationHistory:
    """What was said, in order, with each human input before the call it led to."""
    history = ConversationHistory(records=[], retention_events=[], inputs=[])
    pending: str | None = None
    for event in events:
        match event:
            case RunStarted(resume=True):
                pass
            case RunStarted(initial_input=text):
                if pending is not None:
                    history.inputs.append(ConversationInput(text=pending))
                pending = text or None
            case AgentCall(record=record):
                history.records.append(record)
                if pending is not None:
                    human = ConversationInput(text=pending, before_record_id=record.id)
                    history.inputs.append(human)
                    pending = None
            case ConversationRetention(event=retention):
                apply_retention(history.records, retention)
                history.retention_events.append(retention)
            case _:
                pass
    if pending is not None:
        history.inputs.append(ConversationInput(text=pending))
    return history

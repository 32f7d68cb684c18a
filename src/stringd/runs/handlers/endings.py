"""Endings that a timeline has and nobody heard of: the daemon was killed in between."""

import asyncio
from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec import UNSET

from stringd.runs.engine.replayed import replayed_result
from stringd.runs.record.events import AgentCall, AnyEvent, RunCompleted, StepEnded
from stringd.runs.record.resume import Journal, read_journal
from stringd.runs.record.store import RunStore
from stringd.runs.record.views import last_ending
from stringd.runs.strategy.load import flow_of
from stringd.wire.runs.codec import decode_message
from stringd.wire.runs.messages import StrategyCompleted, StrategyError, StrategyStarted
from stringd.wire.runs.types import AgentCallResult, ErrorInfo, Usage

_STARTED: Final = b'{"type":"strategy_started"'
_ENDED: Final = (b'{"type":"strategy_completed"', b'{"type":"strategy_error"')


async def untold_ending(store: RunStore, run_id: str) -> StrategyCompleted | StrategyError | None:
    """The broadcast that is missing at the end of a run, if one is."""
    last = await asyncio.to_thread(store.last_frame, run_id)
    if last is None or last.startswith(_ENDED):
        return None
    events = await asyncio.to_thread(store.timeline, run_id)
    ending, begun = last_ending(events), await asyncio.to_thread(_begun, store, run_id)
    if ending is None or begun is None:
        return None
    journal = read_journal(events)
    left = journal.steering or UNSET
    if ending.status != "completed":
        return StrategyError(run_id=run_id, error=_reason(ending), undelivered_steering=left)
    return StrategyCompleted(
        run_id=run_id,
        result=await _result(begun, journal, events),
        usage=_usage(journal),
        undelivered_steering=left,
    )


def _begun(store: RunStore, run_id: str) -> bytes | None:
    """The last segment that was begun in the broadcasts, unless it also ended there."""
    begun = None
    for _, frame in store.broadcasts(run_id, 1):
        if frame.startswith(_STARTED):
            begun = frame
        elif frame.startswith(_ENDED):
            begun = None
    return begun


def _reason(ending: RunCompleted) -> ErrorInfo:
    return ending.error or ErrorInfo(code="CANCELLED", message="Run cancelled by client")


async def _result(begun: bytes, journal: Journal, events: Sequence[AnyEvent]) -> str:
    """What the flow, which watchers were told of, makes of what its steps gave."""
    try:
        started = decode_message(begun)
        assert isinstance(started, StrategyStarted)
        flow = flow_of(msgspec.json.decode(started.flow_tree))
    except (ValueError, LookupError, TypeError):
        return _last_text(events)
    found = await replayed_result(flow, journal)
    return _last_text(events) if found is None else found


def _last_text(events: Sequence[AnyEvent]) -> str:
    for event in reversed(events):
        if isinstance(event, StepEnded) and isinstance(event.result, AgentCallResult):
            return event.result.text
        if isinstance(event, AgentCall):
            return event.record.text
    return ""


def _usage(journal: Journal) -> Usage:
    total = Usage()
    for record in journal.calls.values():
        total += record.usage
    return total

"""What an agent remembers, and how much of it its model sees. Nothing is ever deleted."""

from collections.abc import Iterable, Sequence
from typing import Any, Final
from uuid import uuid4

from msgspec import UNSET

from stringd.runs.models.port import Model
from stringd.runs.record.views import apply_retention
from stringd.runs.strategy.definition import RetentionRule
from stringd.system.clock import timestamp
from stringd.wire.runs.types import ConversationRecord, RetentionEvent, RetentionTrigger, Usage

THRESHOLD_RATIO: Final = 0.85
SUMMARY_NOTE: Final = "[Earlier conversation compacted - summary follows.]"


class Memory:
    """The records of one agent, oldest first, superseded ones included."""

    def __init__(self, records: Iterable[ConversationRecord] = ()) -> None:
        self.records = list(records)
        self._counted = 0
        self._turns = 0

    def active(self) -> list[ConversationRecord]:
        return [record for record in self.records if record.status != "superseded"]

    def messages(self) -> list[dict[str, Any]]:
        """Active records, flattened to what the model reads."""
        found: list[dict[str, Any]] = []
        for record in self.active():
            found.append(record.user_message)
            found.extend(record.response_messages)
        return found

    def turns(self) -> int:
        """Model round-trips so far, counted over every record but the summaries."""
        # Records are only added at the end, but for summaries.
        self._turns += sum(
            1
            for record in self.records[self._counted :]
            if record.user_message.get("content") != SUMMARY_NOTE
            for message in record.response_messages
            if message["role"] == "assistant"
        )
        self._counted = len(self.records)
        return self._turns

    def roll(self, keep: int) -> None:
        """Keep the newest `keep` active records in view."""
        active = self.active()
        for record in active[: max(0, len(active) - keep)]:
            record.status = "superseded"

    def apply(self, event: RetentionEvent) -> None:
        """Put a compaction into effect."""
        apply_retention(self.records, event)
        self._counted = self._turns = 0


def due(
    memory: Memory, rule: RetentionRule, model: Model, model_name: str
) -> tuple[str, RetentionTrigger] | None:
    """Why a compaction is needed now, or None."""
    active = memory.active()
    if not rule.compaction or not active:
        return None
    full = _window_is_full(active, model, model_name)
    if full is not None:
        return "context-window", full
    if rule.threshold is not None and len(active) > max(rule.threshold, rule.keep_recent + 1):
        trigger = RetentionTrigger(
            model=model_name, active_record_count=len(active), record_threshold=rule.threshold
        )
        return "record-count", trigger
    return None


def _window_is_full(
    active: Sequence[ConversationRecord], model: Model, model_name: str
) -> RetentionTrigger | None:
    limit = model.max_input_tokens or model.context_window
    used = active[-1].context_usage
    if not limit or used is UNSET or used is None:
        return None
    ratio = used.total_tokens / limit
    if ratio < THRESHOLD_RATIO:
        return None
    return RetentionTrigger(
        model=model_name,
        context_usage=used,
        token_limit=limit,
        context_window=UNSET if model.context_window is None else model.context_window,
        max_input_tokens=UNSET if model.max_input_tokens is None else model.max_input_tokens,
        ratio=ratio,
        threshold_ratio=THRESHOLD_RATIO,
        active_record_count=len(active),
    )


def older_than_recent(memory: Memory, keep_recent: int) -> list[ConversationRecord]:
    """The active records a compaction replaces; none when there are too few."""
    active = memory.active()
    return active[: max(0, len(active) - keep_recent)]


def compaction(
    agent_name: str,
    memory: Memory,
    compacted: Sequence[ConversationRecord],
    summary: str,
    why: tuple[str, RetentionTrigger],
) -> RetentionEvent:
    """The event that replaces `compacted` by a record holding `summary`."""
    now = timestamp()
    kept = memory.active()[len(compacted) :]
    record = ConversationRecord(
        id=str(uuid4()),
        agent_name=agent_name,
        created_at=now,
        user_message={"role": "user", "content": SUMMARY_NOTE},
        response_messages=[{"role": "assistant", "content": summary}],
        text=summary,
        usage=Usage(),
        finish_reason="stop",
        status="active",
    )
    return RetentionEvent(
        id=str(uuid4()),
        agent_name=agent_name,
        created_at=now,
        reason="context-window" if why[0] == "context-window" else "record-count",
        trigger=why[1],
        records_compacted=len(compacted),
        records_retained=len(kept),
        summary_record=record,
        superseded_record_ids=[each.id for each in compacted],
        insert_before_record_id=kept[0].id if kept else UNSET,
    )

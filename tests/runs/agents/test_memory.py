"""What the model still sees: compaction and rolling windows."""

from typing import Any

import pytest

from stringd.runs.agents.memory import SUMMARY_NOTE, Memory, compaction
from stringd.runs.record.views import apply_retention
from stringd.wire.runs.types import ConversationRecord, RetentionTrigger, Usage
from tests.requirements import proves
from tests.runs.support import RunsServer, Watcher, kinds, scripted, sequential, strategy


def record(name: str) -> ConversationRecord:
    return ConversationRecord(
        id=name,
        agent_name="a",
        created_at="2026-01-01T00:00:00.000Z",
        user_message={"role": "user", "content": f"ask {name}"},
        response_messages=[{"role": "assistant", "content": name}],
        text=name,
        usage=Usage(),
        finish_reason="stop",
    )


def test_a_rolling_window_hides_the_oldest_and_deletes_nothing() -> None:
    memory = Memory(record(name) for name in "abc")
    memory.roll(1)
    assert [r.id for r in memory.active()] == ["c"]
    assert len(memory.records) == 3
    memory.roll(0)
    assert memory.messages() == []


def test_a_compaction_puts_its_summary_before_the_oldest_kept_record() -> None:
    memory = Memory(record(name) for name in "abc")
    why = ("record-count", RetentionTrigger())
    event = compaction("a", memory, memory.active()[:2], "short", why)
    memory.apply(event)
    assert [r.text for r in memory.active()] == ["short", "c"]
    assert [r.superseded_by for r in memory.records[:2]] == [event.summary_record.id] * 2
    apply_retention(memory.records, event)
    assert [r.text for r in memory.active()] == ["short", "c"]
    assert memory.turns() == 3


def source(**context: Any) -> dict[str, Any]:
    agent = scripted("one", "two", "three", "four", "five", "six", contextWindow=50)
    return strategy(sequential("a"), a={**agent, "context": context})


@proves("RUN-30")
@pytest.mark.anyio
async def test_too_many_records_are_compacted_before_the_call_and_kept_in_history(
    server: RunsServer, watcher: Watcher
) -> None:
    path = server.strategy(source(compaction={"keepRecent": 1, "threshold": 2}))
    await watcher.run(path, "q1")
    for text in ("q2", "q3"):
        await watcher.ask("prepare_run", runId="r1")
        await watcher.send("continue_run", runId="r1", input=text)
        assert "a:retention" not in kinds(await watcher.until("strategy_completed"))
    await watcher.ask("prepare_run", runId="r1")
    await watcher.send("continue_run", runId="r1", input="q4")
    messages = await watcher.until("strategy_completed")
    assert kinds(messages)[2:4] == ["a:retention", "a:step-start"]
    event = messages[2]["event"]["event"]
    assert (event["reason"], event["recordsCompacted"], event["recordsRetained"]) == (
        "record-count",
        2,
        1,
    )
    history = (await watcher.ask("prepare_run", runId="r1"))["conversation"]
    assert history["retentionEvents"] == [event]
    states = [(r.get("status"), r["userMessage"]["content"]) for r in history["records"]]
    assert states == [
        ("superseded", "q1"),
        ("superseded", "q2"),
        ("active", SUMMARY_NOTE),
        (None, "q3"),
        (None, "q4"),
    ]


@proves("RUN-30")
@pytest.mark.anyio
async def test_a_full_window_triggers_compaction_but_never_of_kept_records(
    server: RunsServer, watcher: Watcher
) -> None:
    await watcher.run(server.strategy(source(compaction={"keepRecent": 1})), "w " * 60)
    for text, compacted in (("q2", False), ("w " * 60, False), ("q4", True)):
        await watcher.ask("prepare_run", runId="r1")
        await watcher.send("continue_run", runId="r1", input=text)
        messages = await watcher.until("strategy_completed")
        assert ("a:retention" in kinds(messages)) is compacted or text == "w " * 60
    retained = [m for m in watcher.seen if kinds([m]) == ["a:retention"]]
    trigger = retained[-1]["event"]["event"]["trigger"]
    assert retained[-1]["event"]["event"]["reason"] == "context-window"
    assert trigger["tokenLimit"] == 50
    assert trigger["ratio"] >= trigger["thresholdRatio"] == 0.85

"""Histories written by the reference are read; what we write has its shape."""

from pathlib import Path

import pytest

from stringd.runs.record.events import AgentCall, RunStarted, decode_events
from stringd.runs.record.views import conversation, latest_start, overview
from stringd.wire.runs.types import ConversationRecord, Usage
from tests.requirements import proves
from tests.runs.support import RunsServer, Watcher, scripted, sequential, serving, strategy

GOLDEN = Path(__file__).parent / "golden" / "reference-1.jsonl"


def lines() -> list[bytes]:
    return GOLDEN.read_bytes().splitlines()


@proves("RUN-32")
def test_the_overview_tells_the_latest_segment() -> None:
    found = overview("r", decode_events(lines()))
    assert found is not None
    assert (found.status, found.cwd, found.started_at, found.completed_at) == (
        "cancelled",
        "/home/ann/new",
        "2026-02-01T11:00:00.000Z",
        "2026-02-01T11:00:02.000Z",
    )
    unfinished = overview("r", decode_events(lines()[:3]))
    assert unfinished is not None
    assert (unfinished.status, unfinished.completed_at) == ("running", None)
    assert overview("r", decode_events(lines()[1:3])) is None


@pytest.mark.anyio
async def test_the_overview_tells_what_each_model_took_and_what_was_said_last(
    server: RunsServer, watcher: Watcher
) -> None:
    source = strategy(sequential("a", "b"), a=scripted("one"), b=scripted("two"))
    await watcher.run(server.strategy(source), "begin")
    (listed,) = (await watcher.ask("list_runs", details=True))["runs"]
    assert listed["last"] == "two"
    (used,) = listed["usage"]
    assert used["model"] == "demo/script"
    assert used["promptTokens"] > 0
    assert used["completionTokens"] > 0


@pytest.mark.anyio
async def test_the_overview_of_a_failed_run_tells_why(server: RunsServer, watcher: Watcher) -> None:
    await watcher.run(server.strategy(strategy(sequential("a"), a=scripted({"error": "no city"}))))
    (listed,) = (await watcher.ask("list_runs", details=True))["runs"]
    assert "no city" in listed["last"]


@proves("RUN-32")
def test_the_conversation_anchors_human_inputs_and_applies_compactions() -> None:
    history = conversation(decode_events(lines()))
    assert [(i.text, i.before_record_id or None) for i in history.inputs] == [
        ("first question", "rec-1"),
        ("lost question", None),
        ("second question", "rec-2"),
    ]
    assert [(r.id, r.status or None) for r in history.records] == [
        ("rec-1", "superseded"),
        ("sum-1", "active"),
        ("rec-2", None),
    ]
    assert history.records[0].user_message["providerOptions"] == {"x": 1}
    assert history.records[0].response_messages[0]["id"] == "m1"


def started(text: str, **more: bool) -> RunStarted:
    place = {"strategy_path": "s", "strategy_name": "S", "cwd": "/"}
    return RunStarted(ts="t", initial_input=text, **place, **more)  # type: ignore[arg-type]


def called(id_: str) -> AgentCall:
    said = [{"role": "assistant", "content": "x"}]
    return AgentCall(
        ts="t",
        record=ConversationRecord(
            id=id_,
            agent_name="a",
            created_at="t",
            user_message={"role": "user", "content": ""},
            response_messages=said,
            text="x",
            usage=Usage(),
            finish_reason="stop",
        ),
    )


def test_an_input_nobody_took_up_is_not_put_before_a_later_segments_call() -> None:
    history = conversation([started("lost"), started(""), called("rec-1")])
    assert [(i.text, i.before_record_id or None) for i in history.inputs] == [("lost", None)]


def test_an_input_is_put_before_the_call_that_a_resumed_segment_makes_of_it() -> None:
    history = conversation([started("kept"), started("", resume=True), called("rec-1")])
    assert [(i.text, i.before_record_id or None) for i in history.inputs] == [("kept", "rec-1")]


def test_damaged_and_foreign_lines_hide_nothing() -> None:
    assert len(decode_events(lines())) == 11
    assert decode_events([b"", b"\xff", b"{}", b"[1]", b'{"type":"run_started"}']) == []
    latest = latest_start(decode_events(lines()))
    assert latest is not None
    assert latest.initial_input == "second question"


@proves("RUN-32")
@pytest.mark.anyio
async def test_a_run_of_the_reference_is_listed_and_continued(tmp_path: Path) -> None:
    runs = tmp_path / "data" / "runs"
    runs.mkdir(parents=True)
    path = tmp_path / "old.yaml"
    text = GOLDEN.read_text("utf-8").replace("STRATEGY", str(path))
    (runs / "old.jsonl").write_text(text, "utf-8")
    async with serving(tmp_path) as server:
        watcher = await server.watcher()
        server.strategy(strategy(sequential("a"), a=scripted("x", "next")), "old.yaml")
        listed = await watcher.ask("list_runs", details=True)
        assert [(r["runId"], r["status"]) for r in listed["runs"]] == [("old", "cancelled")]
        prepared = await watcher.ask("prepare_run", runId="old")
        assert [r["id"] for r in prepared["conversation"]["records"]] == ["rec-1", "sum-1", "rec-2"]
        await watcher.send("continue_run", runId="old", input="go on")
        assert (await watcher.ended())["result"] == "next"
        assert len(server.timeline_lines("old")) == len(lines()) + 5


@pytest.mark.anyio
async def test_what_we_write_is_what_the_format_says(server: RunsServer, watcher: Watcher) -> None:
    await watcher.run(server.strategy(strategy(sequential("a"), a=scripted("x"))), "")
    events = server.timeline("r1")
    assert [event["type"] for event in events] == [
        "run_started",
        "step_started",
        "agent_call",
        "step_completed",
        "run_completed",
    ]
    assert events[0]["initialInput"] == ""
    assert events[2]["ts"] == events[2]["record"]["createdAt"]
    assert set(events[4]) == {"type", "ts", "status"}

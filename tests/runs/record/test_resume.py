"""Resuming: what was done stays done, what was not is done once."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.requirements import proves
from tests.runs.support import (
    Json,
    RunsServer,
    Watcher,
    kinds,
    scripted,
    sequential,
    serving,
    strategy,
)

pytestmark = pytest.mark.anyio

THREE = strategy(
    sequential("a", "b", "c"),
    a=scripted("A"),
    b=scripted({"error": "down"}, "B {message}"),
    c=scripted("C {message}"),
)


async def resume(watcher: Watcher, run_id: str = "r1") -> list[Json]:
    await watcher.ask("prepare_run", runId=run_id)
    await watcher.send("continue_run", runId=run_id, input="", resume=True, requestId="again")
    return await watcher.until("strategy_completed", "strategy_error")


def fixed(server: RunsServer, source: Json, agent: str, *replies: Any) -> None:
    source = json.loads(json.dumps(source))
    source["agents"][agent] = scripted(*replies)
    server.strategy(source)


@proves("RUN-22")
async def test_a_failed_run_resumes_at_the_step_that_failed(
    server: RunsServer, watcher: Watcher
) -> None:
    failed = await watcher.run(server.strategy(THREE), "go")
    assert failed[-1]["error"]["code"] == "EXECUTION_ERROR"
    fixed(server, THREE, "b", "B {message}")
    messages = await resume(watcher)
    steps = [kind for kind in kinds(messages) if kind.startswith("step_started")]
    assert steps == ["step_started(b)", "step_started(c)"]
    assert messages[-1]["result"] == "C B A"
    assert messages[-1]["requestId"] == "again"
    whole = sum(m["usage"]["promptTokens"] for m in watcher.seen if m["type"] == "agent_output")
    assert messages[-1]["usage"]["promptTokens"] == whole


async def test_a_completed_run_has_nothing_to_resume(server: RunsServer, watcher: Watcher) -> None:
    await watcher.run(server.strategy(strategy(sequential("a"), a=scripted("A"))), "go")
    await watcher.ask("prepare_run", runId="r1")
    answer = await watcher.ask("continue_run", runId="r1", input="", resume=True)
    assert answer["code"] == "CONTINUE_FAILED"
    assert answer["message"] == "Run has nothing left to resume: r1"


async def test_a_resumed_run_has_its_to_do_list(server: RunsServer, watcher: Watcher) -> None:
    def use(*calls: tuple[str, Json]) -> Json:
        return {"tools": [{"name": f"todo_{name}", "args": args} for name, args in calls]}

    done = [
        use(("add", {"content": "one"}), ("add", {"content": "two"}), ("add", {"content": "no"})),
        use(("complete", {"id": 1}), ("remove", {"id": 3}), ("complete", {"id": 9})),
    ]
    tools = {"tools": ["todo_add", "todo_complete", "todo_remove", "todo_get"]}
    source = strategy(sequential("a"), a={**scripted(*done, {"error": "down"}), **tools})
    await watcher.run(server.strategy(source), "go")
    source["agents"]["a"] = {**scripted(*done, use(("get", {})), "end"), **tools}
    server.strategy(source)
    messages = await resume(watcher)
    assert messages[-1]["result"] == "end"
    [shown] = [m["event"] for m in messages if m.get("event", {}).get("type") == "tool-result"]
    assert shown["output"] == "[x] #1: one\n[ ] #2: two"


async def test_calls_inside_an_interrupted_step_are_not_repeated(
    server: RunsServer, watcher: Watcher
) -> None:
    inner = {**sequential("a", "b", name="Inner"), "type": "cycle", "cycles": 2, "observer": "o"}
    flow = {**sequential("a"), "steps": [inner]}
    source = strategy(
        flow,
        a=scripted("A1", "A2"),
        b=scripted("B1", {"error": "down"}),
        o=scripted("again", "stop"),
    )
    await watcher.run(server.strategy(source), "go")
    fixed(server, source, "b", "B1", "B2")
    messages = await resume(watcher)
    called = [m["agentName"] for m in messages if m["type"] == "agent_output"]
    assert called == ["b", "o"]
    assert messages[-1]["result"] == "B2"
    records = (await watcher.ask("prepare_run", runId="r1"))["conversation"]["records"]
    assert [r["text"] for r in records] == ["A1", "B1", "again", "A2", "B2", "stop"]


@proves("RUN-22")
async def test_a_stopped_run_keeps_its_answers_and_waiting_steering(tmp_path: Path) -> None:
    source = strategy(
        sequential("u", "slow", "end"),
        u={"type": "user"},
        slow=scripted({"chunks": ["x"], "delayMs": 60_000}),
        end=scripted("end {message}"),
    )
    async with serving(tmp_path) as first:
        watcher = await first.watcher()
        await watcher.ask("prepare_run", runId="r1", strategyPath=str(first.strategy(source)))
        await watcher.send("start_run", runId="r1")
        await watcher.until("request_input")
        await watcher.send("user_input", runId="r1", agentName="u", text="answer")
        await watcher.until("agent_streaming")
        await watcher.ask("steer_run", runId="r1", text="hurry")
    async with serving(tmp_path) as second:
        fixed(second, source, "slow", "fast {message}")
        watcher = await second.watcher()
        messages = await resume(watcher)
        assert "request_input" not in kinds(messages)
        assert messages[-1]["result"] == (
            "end fast answer\n\n<user_steering>\nhurry\n</user_steering>"
        )


@proves("RUN-22")
async def test_an_interrupted_run_is_repaired_when_the_daemon_starts(tmp_path: Path) -> None:
    async with serving(tmp_path) as first:
        watcher = await first.watcher()
        await watcher.run(first.strategy(THREE), "go")
    path = tmp_path / "data" / "runs" / "r1.jsonl"
    kept = path.read_bytes().splitlines(keepends=True)[:-1]
    path.write_bytes(b"".join(kept) + b'{"type":"agent_ca')
    async with serving(tmp_path) as second:
        watcher = await second.watcher()
        [run] = (await watcher.ask("list_runs"))["runs"]
        assert (run["status"], run["completedAt"] is None) == ("error", False)
        shown = await watcher.ask("get_timeline", runId="r1")
        assert shown["error"]["code"] == "INTERRUPTED"
        assert "result" not in shown
        fixed(second, THREE, "b", "B {message}")
        assert (await resume(watcher))[-1]["result"] == "C B A"
        assert (await watcher.ask("get_timeline", runId="r1"))["result"] == "C B A"


async def test_a_step_that_was_put_elsewhere_in_the_file_is_done_anew(
    server: RunsServer, watcher: Watcher
) -> None:
    await watcher.run(server.strategy(THREE), "go")
    moved = json.loads(json.dumps(THREE))
    moved["agents"]["b"] = scripted("B {message}")
    moved["flow"] = sequential("c", "b", "a")
    server.strategy(moved)
    messages = await resume(watcher)
    steps = [kind for kind in kinds(messages) if kind.startswith("step_started")]
    assert steps == ["step_started(c)", "step_started(b)", "step_started(a)"]

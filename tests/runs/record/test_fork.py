"""Forking: a new run begins with what another completed, and repeats nothing of it."""

from pathlib import Path
from typing import Any

import pytest

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

WRITES = {"tools": [{"name": "create_file", "args": {"path": "made.txt", "content": "one\n"}}]}
QUESTION = {"tools": [{"name": "ask_question", "args": {"question": "really?"}}]}
ASKS = {**scripted(QUESTION, "B {message}"), "tools": ["ask_question"]}
THREE = strategy(
    sequential("a", "b", "c"),
    a={**scripted(WRITES, "A"), "tools": ["create_file"]},
    b=scripted("B {message}"),
    c=scripted("C {message}"),
)
CYCLE = strategy(
    {
        "name": "Round",
        "type": "cycle",
        "cycles": 2,
        "observer": "o",
        "steps": [{"agent": "a"}, {"agent": "b"}],
    },
    a=scripted("A {message}"),
    b=scripted("B {message}"),
    o=scripted("O {message}"),
)


async def fork(watcher: Watcher, at: str, run_id: str = "r1", new: str = "f") -> Json:
    return await watcher.ask("fork_run", runId=run_id, at=at, newRunId=new)


async def go_on(watcher: Watcher, run_id: str = "f") -> list[Json]:
    prepared = await watcher.ask("prepare_run", runId=run_id)
    assert prepared["type"] == "run_prepared", prepared
    await watcher.send("continue_run", runId=run_id, input="", resume=True, requestId="go")
    return await watcher.until("strategy_completed", "strategy_error")


def started(messages: list[Json]) -> list[str]:
    return [kind for kind in kinds(messages) if kind.startswith("step_started")]


async def test_a_fork_takes_the_steps_after_the_chosen_one_and_no_other(
    server: RunsServer, watcher: Watcher
) -> None:
    await watcher.run(server.strategy(THREE), "go")
    (server.directory / "made.txt").write_text("changed since\n", "utf-8")
    answer = await fork(watcher, "a")
    assert answer["forkedFrom"] == {"runId": "r1", "path": "0", "step": "a"}
    messages = await go_on(watcher)
    assert started(messages) == ["step_started(b)", "step_started(c)"]
    assert messages[-1]["result"] == "C B A"
    assert (server.directory / "made.txt").read_text("utf-8") == "changed since\n"


async def test_the_run_it_came_from_is_not_changed(server: RunsServer, watcher: Watcher) -> None:
    await watcher.run(server.strategy(THREE), "go")
    before = server.timeline_lines("r1")
    await fork(watcher, "b")
    await go_on(watcher)
    assert server.timeline_lines("r1") == before


async def test_what_led_to_it_can_be_read_in_the_fork(server: RunsServer, watcher: Watcher) -> None:
    await watcher.run(server.strategy(THREE), "go")
    await fork(watcher, "b")
    await go_on(watcher)
    timeline = await watcher.ask("get_timeline", runId="f")
    assert [each["name"] for each in timeline["steps"]] == ["a", "b", "c"]
    assert timeline["forkedFrom"] == {"runId": "r1", "path": "1", "step": "b"}
    said = [each["text"] for each in timeline["conversation"]["records"]]
    assert said == ["A", "B A", "C B A"]
    late = await server.watcher()
    await late.send("subscribe", runId="f", fromSeq=1)
    seen = await late.until("strategy_completed")
    assert [each["seq"] for each in seen] == list(range(1, len(seen) + 1))
    assert {each["runId"] for each in seen} == {"f"}
    assert started(seen) == [f"step_started({name})" for name in "abc"]


async def test_a_round_of_a_cycle_is_named_by_its_path(
    server: RunsServer, watcher: Watcher
) -> None:
    await watcher.run(server.strategy(CYCLE), "go")
    steps = (await watcher.ask("get_timeline", runId="r1"))["steps"]
    assert [each["path"] for each in steps] == ["c1.0", "c1.1", "c2.0", "c2.1"]
    await fork(watcher, "c2.0")
    messages = await go_on(watcher)
    assert [kind for kind in kinds(messages) if kind.endswith(":output")] == [
        "b:output",
        "o:output",
    ]
    assert messages[-1]["result"] == "O B A O B A go"


async def test_a_name_is_the_last_step_called_so(server: RunsServer, watcher: Watcher) -> None:
    await watcher.run(server.strategy(CYCLE), "go")
    assert (await fork(watcher, "a"))["forkedFrom"]["path"] == "c2.0"


async def test_a_fork_survives_a_restart_before_it_is_resumed(tmp_path: Path) -> None:
    async with serving(tmp_path) as server:
        watcher = await server.watcher()
        await watcher.run(server.strategy(THREE), "go")
        await fork(watcher, "b")
    async with serving(tmp_path) as again:
        watcher = await again.watcher()
        listed = {each["runId"]: each["status"] for each in await runs(watcher)}
        assert listed["f"] == "cancelled"
        assert started(await go_on(watcher)) == ["step_started(c)"]


async def runs(watcher: Watcher) -> list[Any]:
    return list((await watcher.ask("list_runs"))["runs"])


async def test_a_run_that_still_works_can_be_forked(server: RunsServer, watcher: Watcher) -> None:
    source = strategy(sequential("a", "b"), a=scripted("A"), b=ASKS)
    await watcher.ask("prepare_run", runId="r1", strategyPath=str(server.strategy(source)))
    await watcher.send("start_run", runId="r1", input="go")
    await watcher.until("request_question")
    await fork(watcher, "a")
    await watcher.ask("prepare_run", runId="f")
    await watcher.send("continue_run", runId="f", input="", resume=True)
    await answer(watcher)
    ended = await watcher.ended()
    assert (ended["runId"], ended["result"]) == ("f", "B A")


async def answer(watcher: Watcher) -> None:
    """Answer the question of the fork, which comes next."""
    asked = (await watcher.until("request_question"))[-1]
    assert asked["runId"] == "f"
    await watcher.send(
        "question_response", runId="f", questionRequestId=asked["requestId"], response="yes"
    )


@pytest.mark.parametrize(
    ("run_id", "at", "code"),
    [("r1", "nobody", "STEP_NOT_FOUND"), ("nope", "a", "RUN_NOT_FOUND"), ("../r", "a", None)],
)
async def test_what_was_not_completed_is_refused(
    server: RunsServer, watcher: Watcher, run_id: str, at: str, code: str | None
) -> None:
    await watcher.run(server.strategy(THREE), "go")
    answer = await fork(watcher, at, run_id)
    assert answer["code"] == (code or "RUN_NOT_FOUND")
    if code == "STEP_NOT_FOUND":
        assert answer["message"].endswith("Completed: 0 (a), 1 (b), 2 (c)")
    assert [each["runId"] for each in await runs(watcher)] == ["r1"]


async def test_the_name_of_another_run_is_refused(server: RunsServer, watcher: Watcher) -> None:
    await watcher.run(server.strategy(THREE), "go")
    assert (await fork(watcher, "a", new="r1"))["message"] == "Run already exists: r1"


async def test_steps_side_by_side_that_were_not_done_begin_from_nothing(tmp_path: Path) -> None:
    flow = {**sequential("slow", "quick"), "type": "broadcast"}
    source = strategy(flow, slow=ASKS, quick=scripted("Q"))
    async with serving(tmp_path, concurrent_broadcast=True) as server:
        watcher = await server.watcher()
        await watcher.ask("prepare_run", runId="r1", strategyPath=str(server.strategy(source)))
        await watcher.send("start_run", runId="r1", input="go")
        seen = kinds(await watcher.until("step_completed"))
        if "request_question" not in seen:
            await watcher.until("request_question")
        await fork(watcher, "quick")
        lines = server.timeline("f")
        assert {each.get("agentName", "quick") for each in lines} <= {"quick"}
        assert not [each for each in lines if each["type"] == "prompt_asked"]
        await watcher.send("stop_run", runId="r1")
        await watcher.ended()
        await watcher.ask("prepare_run", runId="f")
        await watcher.send("continue_run", runId="f", input="", resume=True)
        await answer(watcher)
        assert (await watcher.ended())["result"] == "B go\n\nQ"


async def test_a_fork_of_a_run_that_brought_its_strategy_outlives_that_run(
    server: RunsServer, watcher: Watcher
) -> None:
    said = strategy(sequential("a", "b"), a=scripted("A"), b=scripted("B {message}"))
    prepared = await watcher.ask("prepare_run", runId="r1", strategy=said)
    assert prepared["type"] == "run_prepared", prepared
    await watcher.send("start_run", runId="r1", input="go", requestId="start")
    await watcher.until("strategy_completed")
    assert (await fork(watcher, "a"))["type"] == "run_forked"
    assert (await fork(watcher, "a", "f", "f2"))["type"] == "run_forked"
    for gone, rest in (("r1", "f"), ("f", "f2")):
        assert (await watcher.ask("delete_run", runId=gone))["type"] == "run_deleted"
        assert started(await go_on(watcher, rest)) == ["step_started(b)"]

"""Strategies launched by agents: seen, counted, bounded, and never a failure of the run."""

from pathlib import Path

import pytest

from stringd.runs.equipment import Equipment
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


def launching(name: str, text: str = "go", **more: str) -> Json:
    call = {"name": "launch_strategy", "args": {"name": name, "input": text, **more}}
    return {**scripted({"tools": [call]}, "end"), "tools": ["launch_strategy"]}


def put(server: RunsServer, name: str, source: Json) -> None:
    folder = server.directory / ".stringd" / "strategies"
    folder.mkdir(parents=True, exist_ok=True)
    server.strategy({**source, "name": name}, f".stringd/strategies/{name}.yaml")


def output(messages: list[Json]) -> str:
    events = [m["event"] for m in messages if m["type"] == "agent_streaming"]
    return str(next(e["output"] for e in reversed(events) if e["type"] == "tool-result"))


async def test_a_child_is_seen_under_its_parent_and_its_result_comes_back(
    server: RunsServer, watcher: Watcher
) -> None:
    prompts = server.directory / ".stringd" / "strategies"
    prompts.mkdir(parents=True)
    (prompts / "p.md").write_text("prompt", "utf-8")
    child = {**scripted("child says {message}"), "systemPrompt": "p.md"}
    put(server, "Child", strategy(sequential("c"), c=child))
    source = strategy(sequential("a"), a=launching("Child", "hi"))
    messages = await watcher.run(server.strategy(source), "x")
    assert kinds(messages) == [
        "strategy_started",
        "step_started(a)",
        "a:step-start",
        "a:tool-call",
        "c:step-start",
        *["c:text"] * 3,
        "c:output",
        "c:done",
        "a:tool-result",
        "a:step-start",
        "a:text",
        "a:output",
        "a:done",
        "step_completed(a)",
        "strategy_completed",
    ]
    assert output(messages) == 'Launched "Child" → child says hi'
    outputs = [m["usage"] for m in messages if m["type"] == "agent_output"]
    total = {key: sum(usage[key] for usage in outputs) for key in outputs[0]}
    assert messages[-1]["usage"] == total
    kept = [event["type"] for event in server.timeline("r1")]
    assert kept.count("agent_call") == 1
    assert {m["runId"] for m in messages} == {"r1"}


async def test_the_input_answers_the_childs_first_prompt(
    server: RunsServer, watcher: Watcher
) -> None:
    child = strategy(
        sequential("quiet", "human", "c"),
        quiet=scripted({"empty": True}),
        human={"type": "user"},
        c=scripted("got {message}"),
    )
    put(server, "Child", child)
    source = strategy(sequential("a"), a=launching("Child", "hi"))
    messages = await watcher.run(server.strategy(source), "x")
    assert output(messages) == 'Launched "Child" → got hi'


@pytest.mark.parametrize("name", ["nobody", "broken.yaml"])
async def test_a_launch_that_fails_is_told_to_the_agent(
    server: RunsServer, watcher: Watcher, name: str
) -> None:
    (server.directory / "broken.yaml").write_text("name: [", "utf-8")
    messages = await watcher.run(server.strategy(strategy(sequential("a"), a=launching(name))))
    assert messages[-1]["type"] == "strategy_completed"
    assert output(messages).startswith("launch_strategy failed: ")


async def test_a_child_that_fails_does_not_fail_the_run(
    server: RunsServer, watcher: Watcher
) -> None:
    put(server, "Child", strategy(sequential("c"), c=scripted({"error": "boom"})))
    source = strategy(sequential("a"), a=launching("Child"))
    messages = await watcher.run(server.strategy(source))
    assert messages[-1]["type"] == "strategy_completed"
    assert output(messages) == 'launch_strategy failed: Step "c" failed: LLM call failed: boom'


async def test_grandchildren_are_seen_and_depth_is_bounded(tmp_path: Path) -> None:
    equipment = Equipment(tmp_path / "data", max_depth=3)
    async with serving(tmp_path, equipment=equipment) as server:
        watcher = await server.watcher()
        put(server, "Again", strategy(sequential("again"), again=launching("Again")))
        source = strategy(sequential("a"), a=launching("Again"))
        messages = await watcher.run(server.strategy(source))
        assert messages[-1]["type"] == "strategy_completed"
        assert kinds(messages).count("again:output") == 3
        texts = [m["event"]["output"] for m in messages if m.get("event", {}).get("output")]
        assert texts[0].startswith("launch_strategy failed: Strategies may launch each other")


async def test_stopping_the_run_stops_the_child(server: RunsServer, watcher: Watcher) -> None:
    put(server, "Child", strategy(sequential("c"), c=scripted({"text": "x", "delayMs": 60_000})))
    source = strategy(sequential("a"), a=launching("Child"))
    await watcher.ask("prepare_run", runId="r", strategyPath=str(server.strategy(source)))
    await watcher.send("start_run", runId="r")
    while (await watcher.receive()).get("agentName") != "c":
        pass
    await watcher.send("stop_run", runId="r")
    assert (await watcher.ended())["error"]["code"] == "CANCELLED"
    assert (await watcher.ask("prepare_run", runId="r"))["type"] == "run_prepared"


async def test_strategies_can_be_listed_by_an_agent(server: RunsServer, watcher: Watcher) -> None:
    put(server, "Child", strategy(sequential("c"), c=scripted("x")))
    call = {"tools": [{"name": "list_strategy", "args": {}}]}
    source = strategy(sequential("a"), a={**scripted(call, "end"), "tools": ["list_strategy"]})
    messages = await watcher.run(server.strategy(source))
    assert "- Child" in output(messages).split("\n")


async def test_a_strategy_outside_is_launched_only_with_a_yes(
    server: RunsServer, watcher: Watcher, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("elsewhere") / "s.yaml"
    inner = server.strategy(strategy(sequential("c"), c=scripted("x")), "inner.yaml")
    outside.write_text(inner.read_text("utf-8"), "utf-8")
    source = strategy(sequential("a"), a=launching(str(outside)))
    await watcher.ask("prepare_run", runId="r", strategyPath=str(server.strategy(source)))
    await watcher.send("start_run", runId="r")
    asked = (await watcher.until("request_permission"))[-1]
    assert (asked["toolName"], asked["resource"]) == ("launch_strategy", str(outside))
    await watcher.send(
        "permission_decision", runId="r", permissionRequestId=asked["requestId"], decision="deny"
    )
    messages = await watcher.until("strategy_completed")
    assert output(messages).startswith("Error (permission_denied): ")

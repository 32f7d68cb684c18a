"""How messages travel: cycles, broadcasts, nesting, custom flows, hooks."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from stringd.formats.shapes import Fields, Number
from stringd.runs.agents.extensions import FlowSteps, Registry
from stringd.runs.agents.hooks import CallInfo
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


def cycle(*agents: str, **extra: Any) -> Json:
    return {**sequential(*agents), "type": "cycle", **extra}


@proves("RUN-24", "RUN-25")
async def test_a_cycle_returns_the_step_output_the_observer_accepted(
    server: RunsServer, watcher: Watcher
) -> None:
    source = strategy(
        cycle("w", cycles=5, observer="judge"),
        w=scripted("draft 1", "draft 2", "draft 3"),
        judge=scripted("more", "all done"),
    )
    messages = await watcher.run(server.strategy(source), "go")
    assert messages[-1]["result"] == "draft 2"
    assert kinds(messages).count("step_started(w)") == 2
    assert "step_started(judge)" not in kinds(messages)
    assert [m["message"] for m in messages if m["type"] == "step_started"] == ["go", "more"]
    outputs = [m["usage"] for m in messages if m["type"] == "agent_output"]
    assert len(outputs) == 4
    total = sum(usage["promptTokens"] for usage in outputs)
    assert messages[-1]["usage"]["promptTokens"] == total


async def test_a_cycle_without_a_break_ends_with_the_last_verdict(
    server: RunsServer, watcher: Watcher
) -> None:
    source = strategy(
        cycle("w", cycles=2, observer="judge"),
        w=scripted("x"),
        judge=scripted("again", "once more"),
    )
    assert (await watcher.run(server.strategy(source)))[-1]["result"] == "once more"


async def test_a_cycle_without_observer_feeds_itself(server: RunsServer, watcher: Watcher) -> None:
    source = strategy(cycle("w", cycles=3), w=scripted("{message}!"))
    assert (await watcher.run(server.strategy(source), "a"))[-1]["result"] == "a!!!"


async def test_an_endless_cycle_of_instant_steps_can_be_stopped(
    server: RunsServer, watcher: Watcher
) -> None:
    source = strategy(cycle("u", cycles="Infinity"), u={"type": "user"})
    await watcher.ask("prepare_run", runId="r", strategyPath=str(server.strategy(source)))
    await watcher.send("start_run", runId="r", input="spin")
    await watcher.until("step_completed")
    await watcher.send("stop_run", runId="r")
    assert (await watcher.ended())["error"]["code"] == "CANCELLED"


BROADCAST = strategy(
    {**sequential("a", "b"), "type": "broadcast", "separator": " | "},
    a=scripted({"chunks": ["A ", "{message}"], "delayMs": 20}),
    b=scripted("B {message}"),
)


@pytest.mark.parametrize("concurrent", [False, True])
async def test_a_broadcast_joins_its_outputs_in_order_however_it_runs(
    tmp_path: Path, concurrent: bool
) -> None:
    async with serving(tmp_path, concurrent_broadcast=concurrent) as server:
        watcher = await server.watcher()
        messages = await watcher.run(server.strategy(BROADCAST), "x")
        assert messages[-1]["result"] == "A x | B x"
        order = [m["stepName"] for m in messages if m["type"] == "step_completed"]
        assert order == (["b", "a"] if concurrent else ["a", "b"])


@pytest.mark.parametrize("parallel", [False, True])
async def test_a_broadcast_can_say_itself_whether_it_is_parallel(
    tmp_path: Path, parallel: bool
) -> None:
    source = {**BROADCAST, "flow": {**BROADCAST["flow"], "parallel": parallel}}
    async with serving(tmp_path, concurrent_broadcast=not parallel) as server:
        messages = await (await server.watcher()).run(server.strategy(source), "x")
        steps = [m["type"] for m in messages if m["type"].startswith("step_")]
        together = ["step_started"] * 2 + ["step_completed"] * 2
        assert (steps == together) is parallel
        assert messages[-1]["result"] == "A x | B x"


async def test_a_failure_in_a_concurrent_broadcast_stops_the_others(tmp_path: Path) -> None:
    source = strategy(
        {**sequential("a", "b"), "type": "broadcast"},
        a=scripted({"chunks": ["x"], "delayMs": 60_000}),
        b=scripted({"error": "broken"}),
    )
    async with serving(tmp_path, concurrent_broadcast=True) as server:
        watcher = await server.watcher()
        error = (await watcher.run(server.strategy(source)))[-1]["error"]
        assert error["message"] == 'Step "b" failed: LLM call failed: broken'


async def test_a_nested_flow_is_one_step_and_its_failures_nest(
    server: RunsServer, watcher: Watcher
) -> None:
    flow = {**sequential("a"), "steps": [{"agent": "a"}, sequential("b", "c", name="Inner")]}
    source = strategy(flow, a=scripted("1"), b=scripted("2"), c=scripted("3", {"error": "no"}))
    path = server.strategy(source)
    messages = await watcher.run(path, "x")
    steps = [k for k in kinds(messages) if k.startswith("step_")]
    assert steps == [
        "step_started(a)",
        "step_completed(a)",
        "step_started(Inner)",
        "step_completed(Inner)",
    ]
    inner = messages[-2]["result"]
    assert (inner["text"], inner["finishReason"], "contextUsage" in inner) == ("3", "stop", False)
    await watcher.ask("prepare_run", runId="r1")
    await watcher.send("continue_run", runId="r1", input="y")
    error = (await watcher.ended())["error"]["message"]
    assert error == 'Step "Inner" failed: Step "c" failed: LLM call failed: no'


async def shout(message: str, config: Mapping[str, Any]) -> str:
    return message.upper() * int(config.get("times", 1))


async def pick_second(steps: FlowSteps, message: str, config: Mapping[str, Any]) -> str:
    assert list(steps.names) == ["a", "b"]
    first = await steps.call_agent("a", message)
    return await steps.run(1, first)


async def test_registered_code_serves_as_agent_and_flow(tmp_path: Path) -> None:
    registry = Registry()
    registry.agent("shout", shout, Fields({}, {"times": Number(above=0)}))
    registry.flow("second", pick_second)
    source = strategy(
        {**sequential("a", "b"), "type": "second"},
        a={"type": "shout", "config": {"times": 2}},
        b=scripted("<{message}>"),
    )
    async with serving(tmp_path, registry=registry) as server:
        watcher = await server.watcher()
        messages = await watcher.run(server.strategy(source), "hi")
        assert messages[-1]["result"] == "<HIHI>"
        assert kinds(messages)[1:3] == ["a:output", "a:done"]
        assert "step_started(b)" in kinds(messages)
        source["agents"]["a"]["config"]["times"] = 0
        wrong = await watcher.ask(
            "prepare_run", runId="w", strategyPath=str(server.strategy(source))
        )
        assert wrong["message"] == (
            'Agent "a" configuration validation failed for type "shout":\n'
            "  - config.times: Number must be greater than 0"
        )


async def test_hooks_change_what_goes_in_and_out_and_the_first_call_differs(tmp_path: Path) -> None:
    registry = Registry()
    seen: list[str] = []

    async def first(_call: CallInfo, text: str) -> str:
        return f"first {text}"

    async def later(_call: CallInfo, text: str) -> str:
        return f"later {text}"

    async def polish(_call: CallInfo, text: str) -> str:
        return f"{text}."

    async def note(step: str, text: str) -> None:
        seen.append(f"{step}={text}")

    async def mark(_flow: str, text: str) -> str:
        return f"[{text}]"

    registry.hooks.alter_first_call_message.append(first)
    registry.hooks.alter_call_message.append(later)
    registry.hooks.alter_response.append(polish)
    registry.hooks.before_step.append(note)
    registry.hooks.after_step.append(note)
    registry.hooks.alter_message_before_cycle.append(mark)
    source = strategy(cycle("a", cycles=2), a={"model": "demo/echo"})
    async with serving(tmp_path, registry=registry) as server:
        watcher = await server.watcher()
        messages = await watcher.run(server.strategy(source), "x")
        assert messages[-1]["result"] == "later [first [x].]."
        outputs = [m["text"] for m in messages if m["type"] == "agent_output"]
        assert outputs == ["first [x]", "later [first [x].]"]
        assert seen[:2] == ["a=[x]", "a=first [x]."]


async def test_a_failing_hook_fails_the_call(tmp_path: Path) -> None:
    registry = Registry()

    async def refuse(_call: CallInfo, _text: str) -> None:
        raise ValueError("not today")

    registry.hooks.before_call.append(refuse)
    async with serving(tmp_path, registry=registry) as server:
        watcher = await server.watcher()
        source = strategy(sequential("a"), a=scripted("x"))
        error = (await watcher.run(server.strategy(source)))[-1]["error"]
        assert error["message"] == 'Step "a" failed: LLM call failed: not today'


@proves("RUN-29")
@pytest.mark.parametrize(
    ("config", "text", "result"),
    [
        ({"requireInput": True, "presetMessage": "preset"}, "given", "given"),
        ({"requireInput": False, "presetMessage": "preset"}, "given", "preset"),
        ({"requireInput": False}, "given", "given"),
        ({"requireInput": False}, "", ""),
        ({"requireInput": False, "presetMessage": ""}, "given", ""),
    ],
)
async def test_user_agents_pass_on_ask_or_preset(
    server: RunsServer, watcher: Watcher, config: Json, text: str, result: str
) -> None:
    source = strategy(sequential("u"), u={"type": "user", "config": config})
    messages = await watcher.run(server.strategy(source), text)
    assert kinds(messages) == [
        "strategy_started",
        "step_started(u)",
        "step_completed(u)",
        "strategy_completed",
    ]
    assert messages[-1]["result"] == result
    assert messages[-1]["usage"] == {"promptTokens": 0, "completionTokens": 0}


async def test_code_that_swallows_its_cancellation_does_not_undo_a_stop(tmp_path: Path) -> None:
    async def stubborn(message: str, config: Mapping[str, Any]) -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "finished anyway"
        return ""

    registry = Registry()
    registry.agent("stubborn", stubborn)
    source = strategy(sequential("a"), a={"type": "stubborn"})
    async with serving(tmp_path, registry=registry) as server:
        watcher = await server.watcher()
        await watcher.ask("prepare_run", runId="r", strategyPath=str(server.strategy(source)))
        await watcher.send("start_run", runId="r")
        await watcher.until("step_started")
        await watcher.send("stop_run", runId="r")
        assert (await watcher.ended())["error"]["code"] == "CANCELLED"
        assert (await watcher.ask("prepare_run", runId="r"))["type"] == "run_prepared"
        assert "strategy_completed" not in kinds(watcher.seen)
        ends = [e["status"] for e in server.timeline("r") if e["type"] == "run_completed"]
        assert ends == ["cancelled"]

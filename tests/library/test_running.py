"""Strategies of a program, run for real: in this process, in the daemon, in a notebook's loop."""

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from stringd import Agent, Broadcast, Cycle, Person, Sequential, follow, run, run_async, tool
from stringd.client import AsyncRuns, RequestFailedError, RunFailedError, Runs
from stringd.extend import Hooks
from stringd.library import Prompt, RunResult
from stringd.testing import CallTool, Reply, ScriptedModel, with_models
from stringd.wire.runs import encode
from stringd.wire.runs import messages as m
from tests.support.daemon import Daemon

ECHO = Agent("echo", model="demo/echo")


@tool
def word_count(text: str) -> int:
    "Count the words of a text."
    return len(text.split())


@pytest.fixture
def in_daemon(daemon: Daemon, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.setenv("STRINGD_PORT", str(daemon.port))
    return {"daemon": True}


@pytest.fixture(params=["here", "daemon"])
def where(request: pytest.FixtureRequest, in_daemon: dict[str, Any]) -> dict[str, Any]:
    """Options for a run in this process, and for one in the daemon."""
    return {} if request.param == "here" else in_daemon


def counting(*after: str) -> Agent:
    calls = Reply(tools=[CallTool("word_count", text="a b c")])
    return Agent("writer", model=ScriptedModel(calls, *after), tools=[word_count])


def test_an_agent_uses_a_function_of_the_program(where: dict[str, Any]) -> None:
    result = run(counting("three words"), "count", **where)
    assert result.text == str(result) == "three words"
    assert [(each.tool, each.output) for each in result.tools] == [("word_count", "3")]


def test_a_cycle_ends_when_its_observer_says_so(where: dict[str, Any]) -> None:
    critic = Agent("critic", model=ScriptedModel("longer", "==OK=="))
    result = run(Cycle(counting("one", "two"), critic, until="==OK==", rounds=5), "x", **where)
    assert result.text == "two"
    assert result.said("critic") == ["longer", "==OK=="]


def test_the_same_objects_give_the_same_events_here_and_in_the_daemon(
    in_daemon: dict[str, Any],
) -> None:
    critic = Agent("critic", model=ScriptedModel("==OK=="))
    flow = Sequential(Cycle(counting("one"), critic, until="==OK=="), Broadcast(ECHO, ECHO))
    here, there = (run(flow, "x", **options) for options in ({}, in_daemon))
    assert [_plain(each) for each in here.events] == [_plain(each) for each in there.events]


def _plain(event: m.RunBroadcast) -> bytes:
    """An event without what differs between any two runs."""
    event.ts, event.run_id, event.request_id = "", "", None
    return encode(event)


def test_what_a_tool_raises_is_told_to_the_model(where: dict[str, Any]) -> None:
    @tool
    def broken() -> str:
        raise OSError("no disk")

    model = ScriptedModel(Reply(tools=[CallTool("broken")]), "I see")
    result = run(Agent("a", model=model, tools=[broken]), "x", **where)
    assert result.tools[0].output == "Tool `broken` threw: no disk"


def test_arguments_that_do_not_fit_never_reach_the_function(where: dict[str, Any]) -> None:
    model = ScriptedModel(Reply(tools=[CallTool("word_count", text=5)]), "I see")
    result = run(Agent("a", model=model, tools=[word_count]), "x", **where)
    assert "Expected string, received number" in result.tools[0].output


def test_prompts_are_answered_by_the_program(where: dict[str, Any]) -> None:
    asked: list[str] = []

    def answer(prompt: Prompt) -> str:
        asked.append(type(prompt).__name__)
        return "blue"

    result = run(Sequential(Person("you"), ECHO), "", answer=answer, **where)
    assert (result.text, asked) == ("blue", ["RequestInput"])


def test_without_somebody_to_answer_a_question_ends_the_run(where: dict[str, Any]) -> None:
    with pytest.raises(RunFailedError, match=r"you waits for a text.*answer=") as failed:
        run(Sequential(Person("you"), ECHO), "", **where)
    assert failed.value.code == "NEEDS_ANSWER"


def test_without_somebody_to_decide_a_permission_is_denied(tmp_path: Path) -> None:
    outside = str(tmp_path / "out.txt")
    calls = Reply(tools=[CallTool("create_file", path=outside, content="x")])
    agent = Agent("a", model=ScriptedModel(calls, "done"), tools=["create_file"])
    (tmp_path / "work").mkdir()
    result = run(agent, "x", cwd=tmp_path / "work")
    assert "nobody is there to decide" in result.tools[0].output
    assert not Path(outside).exists()
    run(agent, "x", cwd=tmp_path / "work", answer=lambda _prompt: "allow")
    assert Path(outside).read_text() == "x"


def test_a_failed_run_raises_what_went_wrong(where: dict[str, Any]) -> None:
    with pytest.raises(RunFailedError, match="no money"):
        run(Agent("a", model=ScriptedModel(Reply(error="no money"))), "x", **where)
    with pytest.raises(RequestFailedError, match="unknown tool"):
        run(Agent("a", model="demo/echo", tools=["no_such_tool"]), "x", **where)


def test_mappings_and_files_run_like_objects(where: dict[str, Any], tmp_path: Path) -> None:
    flow = Sequential(counting("three"))
    path = flow.save(tmp_path / "count.yaml")
    for strategy in (flow.to_dict(), path, str(path)):
        assert run(strategy, "x", tools=[word_count], **where).text == "three"


def test_models_are_replaced_by_the_name_of_their_agents() -> None:
    flow = Cycle(
        Agent("writer", model="openai/gpt-5"), Agent("critic", model="x/y"), until="OK", rounds=2
    )
    scripted = with_models(flow, {"writer": ScriptedModel("text"), "critic": ScriptedModel("OK")})
    assert run(scripted, "x").text == "text"
    with pytest.raises(ValueError, match="no agent is called nobody"):
        with_models(flow, {"nobody": "demo/echo"})


def test_hooks_are_decorators_for_plain_and_asynchronous_functions() -> None:
    hooks = Hooks()
    seen: list[str] = []

    @hooks.before_call
    def note(_call: object, text: str) -> None:
        seen.append(text)

    @hooks.alter_response
    async def louder(_call: object, text: str) -> str:
        return text.upper()

    assert run(ECHO, "hi", hooks=hooks).text == "HI"
    assert seen == ["hi"]
    with pytest.raises(ValueError, match="in this process"):
        run(ECHO, "hi", hooks=hooks, daemon=True)


def test_runs_are_kept_where_the_program_says(tmp_path: Path) -> None:
    result = run(ECHO, "hi", data_dir=tmp_path / "data")
    assert (tmp_path / "data" / "runs" / f"{result.run_id}.jsonl").exists()


def test_a_notebook_shows_a_result() -> None:
    async def cell() -> RunResult:
        # A notebook's cell runs inside a loop.
        return run(ECHO, "**hi**")

    shown = asyncio.run(cell())._repr_markdown_()
    assert shown.startswith("**hi**\n\n")


@pytest.mark.anyio
async def test_events_come_while_the_run_works(where: dict[str, Any]) -> None:
    events = [event async for event in follow(ECHO, "hello", **where)]
    assert isinstance(events[0], m.StrategyStarted)
    assert isinstance(events[-1], m.StrategyCompleted)
    assert (await run_async(ECHO, "hello", **where)).text == "hello"


@pytest.mark.anyio
async def test_the_clients_take_agents_and_flows(daemon: Daemon) -> None:
    flow = Sequential(counting("three"))
    async with AsyncRuns(daemon.port) as runs:
        assert await (await runs.run(flow, "count")).result() == "three"
    last = [event async for event in Runs(daemon.port).follow(flow, "count")][-1]
    assert isinstance(last, m.StrategyCompleted)
    with Runs(daemon.port) as blocking:
        assert blocking.run(flow, "count").result() == "three"
    *_, last = Runs(daemon.port).follow(flow, "count")
    assert isinstance(last, m.StrategyCompleted)


@pytest.mark.anyio
async def test_leaving_the_events_early_stops_the_run(
    in_daemon: dict[str, Any], daemon: Daemon
) -> None:
    slow = Agent("slow", model=ScriptedModel(Reply("a b c d", delay=60)))
    events = follow(slow, "x", **in_daemon)
    first = await anext(events)
    await events.aclose()
    async with AsyncRuns(daemon.port) as runs:
        assert (await runs.timeline(first.run_id)).run.status == "cancelled"


@pytest.mark.anyio
async def test_a_tool_of_a_program_that_is_gone_fails_in_words(daemon: Daemon) -> None:
    """Only the run is left; its agent reads why the tool does not work."""
    began = asyncio.Event()

    @tool
    async def for_ever() -> str:
        began.set()
        await asyncio.Event().wait()
        return ""

    model = ScriptedModel(Reply(tools=[CallTool("for_ever")]), "over")
    flow = Sequential(Agent("a", model=model, tools=[for_ever]))
    async with AsyncRuns(daemon.port) as watching:
        async with AsyncRuns(daemon.port) as offering:
            started = await offering.run(flow.to_dict(), "x", tools=flow.tools)
            followed = await watching.follow(started.run_id)
            await began.wait()
        events = [event async for event in followed]
    result = RunResult("", "", events[-1].usage, events)  # type: ignore[attr-defined]
    assert "no longer connected" in result.tools[0].output
    assert result.said() == ["over"]


@pytest.mark.anyio
async def test_only_the_client_that_was_asked_answers_a_call(daemon: Daemon) -> None:
    from stringd.wire.runs.requests import ToolAnswer

    async with AsyncRuns(daemon.port) as runs:
        with pytest.raises(RequestFailedError, match="No pending tool call") as refused:
            await runs.ask(ToolAnswer(run_id="r", call_id="c", output="mine"))
    assert refused.value.code == "NO_PENDING_TOOL_CALL"


def test_the_objects_load_without_the_engine_and_the_clients() -> None:
    code = (
        "import sys; from stringd import Agent, Broadcast, Cycle, Sequential, run, tool; "
        "print(sorted({'websockets', 'yaml', 'httpx2', 'stringd.runs.service'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"

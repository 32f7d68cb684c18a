"""A resumed call goes on with what it had, and repeats only what does no harm."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from stringd.runs.agents.extensions import Registry
from stringd.runs.record.events import ToolFinished, ToolStarted
from stringd.runs.record.resume import Journal, Unfinished
from stringd.runs.tools.built_in import rebuilding_tools
from stringd.runs.tools.context import ToolContext
from stringd.runs.tools.output import ToolOutput
from tests.runs.support import Json, RunsServer, Watcher, scripted, sequential, serving, strategy
from tests.support.daemon import WAIT_SECONDS

pytestmark = pytest.mark.anyio


def test_a_list_is_remade_from_calls_that_ended_each_once() -> None:
    journal = Journal(unfinished=Unfinished(rebuilding_tools()))
    before = journal.unfinished
    for key in ("0#0.0", "0#0.1", "0#0.0"):
        named = {"agent_name": "a", "tool_name": "todo_add"}
        before.note(ToolStarted(ts="t", key=key, args="{}", **named))
    before.note(ToolFinished(ts="t", key="0#0.0", output="", status="completed"))
    assert [call.key for call in journal.calls_to_rebuild()] == ["0#0.0"]


class Slow:
    """A tool that counts its calls and hangs in the one it is told to."""

    description = "counts"
    guidance: str | None = None
    parameters: Mapping[str, Any] = {"type": "object", "properties": {}}

    def __init__(self, name: str, *, repeatable: bool) -> None:
        self.name = name
        self.repeatable = repeatable
        self.calls: list[int] = []
        self.reached = asyncio.Event()
        self.hang = True

    async def call(self, args: Mapping[str, Any], context: ToolContext) -> ToolOutput:
        self.calls.append(args["n"])
        if args["n"] == 1 and self.hang:
            self.hang = False
            self.reached.set()
            await asyncio.Event().wait()
        return ToolOutput(f"did {args['n']}")


def source(name: str) -> Json:
    replies = [{"tools": [{"name": name, "args": {"n": n}}]} for n in range(3)]
    return strategy(sequential("a"), a={**scripted(*replies, "end"), "tools": [name]})


async def cut_off(server: RunsServer, watcher: Watcher, tool: Slow) -> list[Json]:
    """Stop a run in its second call and resume it; the messages of the second segment."""
    path = str(server.strategy(source(tool.name)))
    await watcher.ask("prepare_run", runId="r", strategyPath=path)
    await watcher.send("start_run", runId="r", input="go")
    async with asyncio.timeout(WAIT_SECONDS):
        await tool.reached.wait()
    await watcher.send("stop_run", runId="r")
    await watcher.ended()
    await watcher.ask("prepare_run", runId="r")
    await watcher.send("continue_run", runId="r", input="", resume=True)
    return await watcher.until("strategy_completed")


@pytest.mark.parametrize("repeatable", [True, False])
async def test_only_a_harmless_call_is_made_again(tmp_path: Any, repeatable: bool) -> None:
    tool = Slow("slow", repeatable=repeatable)
    registry = Registry()
    registry.tool(tool)
    async with serving(tmp_path, registry=registry) as server:
        messages = await cut_off(server, await server.watcher(), tool)
        record = server.timeline("r")
    assert tool.calls == ([0, 1, 1, 2] if repeatable else [0, 1, 2])
    results = [m["event"]["output"] for m in messages if m.get("event", {}).get("output")]
    assert len(results) == 2
    assert ("interrupted" in results[0]) != repeatable
    call = next(event["record"] for event in record if event["type"] == "agent_call")
    assert [m["role"] for m in call["responseMessages"]] == ["assistant", "tool"] * 3 + [
        "assistant"
    ]
    assert call["userMessage"]["content"] == "go"

"""The tools of a program: carried out here when an agent of one of its runs calls them."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from msgspec import UNSET

from stringd.wire.runs.messages import ToolAsked
from stringd.wire.runs.requests import ClientMessage, OfferedTool, ToolAnswer


class ToolAnswerText(NamedTuple):
    """What a tool came to; the model reads the text."""

    text: str
    ok: bool = True


class ClientSideTool(Protocol):
    """`parameters` is a JSON Schema object. `answer` never raises: a failure is a text too."""

    @property
    def name(self) -> str: ...

    @property
    def description(self) -> str: ...

    @property
    def parameters(self) -> Mapping[str, Any]: ...

    async def answer(self, args: Mapping[str, Any]) -> ToolAnswerText: ...


class StrategyObject(Protocol):
    """A strategy that a program wrote as objects, with the functions its agents call."""

    def to_dict(self) -> dict[str, Any]: ...

    @property
    def tools(self) -> Sequence[ClientSideTool]: ...


AnyStrategy = str | Mapping[str, Any] | StrategyObject
"""A file or the name of a strategy, what a file would say, or objects."""


class ClientTools:
    """What a connection offers, and the calls it works on. `send` sends a request."""

    def __init__(self, send: Callable[[ClientMessage], Awaitable[None]]) -> None:
        self._send = send
        self._known: dict[str, dict[str, ClientSideTool]] = {}
        self._working: set[asyncio.Task[None]] = set()

    def belong_to(self, run_id: str, tools: Sequence[ClientSideTool]) -> None:
        """From now on calls of this run are carried out by these."""
        self._known[run_id] = {each.name: each for each in tools}

    def asked(self, call: ToolAsked) -> None:
        """Begin a call; its answer is sent when there is one."""
        task = asyncio.get_running_loop().create_task(self._carry_out(call))
        self._working.add(task)
        task.add_done_callback(self._working.discard)

    async def close(self) -> None:
        """End the calls that are under way."""
        working = list(self._working)
        for task in working:
            task.cancel()
        await asyncio.gather(*working, return_exceptions=True)

    async def _carry_out(self, call: ToolAsked) -> None:
        tool = self._known.get(call.run_id, {}).get(call.tool_name)
        if tool is None:
            result = ToolAnswerText(f"This program has no tool {call.tool_name!r}", ok=False)
        else:
            result = await tool.answer(call.args)
        await self._send(
            ToolAnswer(run_id=call.run_id, call_id=call.call_id, output=result.text, ok=result.ok)
        )


def offered(tool: ClientSideTool) -> OfferedTool:
    """A tool as a request offers it."""
    return OfferedTool(
        name=tool.name,
        description=tool.description,
        parameters=dict(tool.parameters),
        guidance=getattr(tool, "guidance", None) or UNSET,
        effect=getattr(tool, "effect", "writes"),
        repeatable=bool(getattr(tool, "repeatable", False)),
    )

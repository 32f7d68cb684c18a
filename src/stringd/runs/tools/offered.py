"""Tools that a client offers and carries out itself, in its own process."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any
from uuid import uuid4

from msgspec import UNSET

from stringd.runs.tools.context import ToolContext
from stringd.runs.tools.output import ToolFailure, ToolOutput
from stringd.runs.tools.schema import Problem, problems
from stringd.wire.runs.messages import ToolAsked
from stringd.wire.runs.requests import OfferedTool

Ask = Callable[[ToolAsked], None]


class OpenToolCalls:
    """The calls one client has been asked to carry out and has not answered.

    `ask` sends it a message.
    """

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._open: dict[str, asyncio.Future[ToolOutput]] = {}
        self._gone = False

    async def call(self, name: str, args: Mapping[str, Any], context: ToolContext) -> ToolOutput:
        """What the client answers. Raises `ToolFailure` when it is gone."""
        if self._gone:
            raise _gone(name)
        call_id = str(uuid4())
        answer: asyncio.Future[ToolOutput] = asyncio.get_running_loop().create_future()
        self._open[call_id] = answer
        self._ask(
            ToolAsked(
                run_id=context.run_id,
                call_id=call_id,
                agent_name=context.agent_name,
                tool_name=name,
                args=dict(args),
            )
        )
        try:
            return await answer
        except ConnectionError:
            raise _gone(name) from None
        finally:
            del self._open[call_id]

    def answer(self, call_id: str, output: ToolOutput) -> bool:
        """Take an answer; False when nobody waits for it."""
        waiting = self._open.get(call_id)
        if waiting is None or waiting.done():
            return False
        waiting.set_result(output)
        return True

    def close(self) -> None:
        """The client is gone: what it was asked to do comes to nothing."""
        self._gone = True
        for waiting in self._open.values():
            if not waiting.done():
                waiting.set_exception(ConnectionError())


class ClientTool:
    """One tool of a client."""

    def __init__(self, offer: OfferedTool, calls: OpenToolCalls) -> None:
        self.name = offer.name
        self.description = offer.description
        self.parameters: Mapping[str, Any] = offer.parameters or {"type": "object"}
        self.guidance = None if offer.guidance is UNSET else offer.guidance
        self.effect = offer.effect
        self.repeatable = offer.repeatable
        self._calls = calls

    async def call(self, args: Mapping[str, Any], context: ToolContext) -> ToolOutput:
        issues = list(problems(self.parameters, args))
        if issues:
            return _invalid(self.name, issues)
        try:
            return await self._calls.call(self.name, args, context)
        except ToolFailure as failure:
            return ToolOutput(str(failure), ok=False, error=failure.problem)


def _invalid(name: str, issues: list[Problem]) -> ToolOutput:
    lines = "\n".join(f"- `{issue.path}`: {issue.problem}" for issue in issues)
    return ToolOutput(f"Invalid arguments for `{name}`:\n{lines}", ok=False)


def _gone(name: str) -> ToolFailure:
    return ToolFailure(
        "unknown",
        f"The program that offers `{name}` is no longer connected; the tool cannot be used.",
        recoverable=False,
    )

"""Code that runs around agent calls, tool calls, steps and cycles.

Transforms chain; the others run in order and are awaited. A hook that raises fails what it
surrounds. On an agent's first call the list for first calls takes the place of its regular twin,
if it holds anything.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, fields
from typing import NamedTuple

from stringd.wire.runs.stream import AgentStreamEvent
from stringd.wire.runs.types import AgentCallResult


class CallInfo(NamedTuple):
    """Which call a hook is about."""

    agent_name: str
    first: bool


AlterText = Callable[[CallInfo, str], Awaitable[str]]
OnText = Callable[[CallInfo, str], Awaitable[None]]
OnResult = Callable[[CallInfo, AgentCallResult], Awaitable[None]]
OnStream = Callable[[CallInfo, AgentStreamEvent], Awaitable[None]]
OnTool = Callable[[CallInfo, str, str], Awaitable[None]]
OnStep = Callable[[str, str], Awaitable[None]]
AlterCycle = Callable[[str, str], Awaitable[str]]


@dataclass
class Hooks:
    """Lists to append to. Step and cycle hooks get the step's or flow's name first."""

    alter_call_message: list[AlterText] = field(default_factory=list)
    alter_first_call_message: list[AlterText] = field(default_factory=list)
    before_call: list[OnText] = field(default_factory=list)
    before_first_call: list[OnText] = field(default_factory=list)
    after_call_result: list[OnResult] = field(default_factory=list)
    after_first_call_result: list[OnResult] = field(default_factory=list)
    alter_response: list[AlterText] = field(default_factory=list)
    alter_first_response: list[AlterText] = field(default_factory=list)
    on_stream_event: list[OnStream] = field(default_factory=list)
    before_tool_call: list[OnTool] = field(default_factory=list)
    after_tool_call: list[OnTool] = field(default_factory=list)
    before_step: list[OnStep] = field(default_factory=list)
    after_step: list[OnStep] = field(default_factory=list)
    alter_message_before_cycle: list[AlterCycle] = field(default_factory=list)
    alter_message_after_cycle: list[AlterCycle] = field(default_factory=list)

    def copy(self) -> "Hooks":
        return Hooks(**{each.name: list(getattr(self, each.name)) for each in fields(self)})

    async def message(self, call: CallInfo, text: str) -> str:
        first, regular = self.alter_first_call_message, self.alter_call_message
        for hook in first if call.first and first else regular:
            text = await hook(call, text)
        return text

    async def before(self, call: CallInfo, text: str) -> None:
        first, regular = self.before_first_call, self.before_call
        for hook in first if call.first and first else regular:
            await hook(call, text)

    async def result(self, call: CallInfo, result: AgentCallResult) -> None:
        first, regular = self.after_first_call_result, self.after_call_result
        for hook in first if call.first and first else regular:
            await hook(call, result)

    async def response(self, call: CallInfo, text: str) -> str:
        first, regular = self.alter_first_response, self.alter_response
        for hook in first if call.first and first else regular:
            text = await hook(call, text)
        return text

"""Code that runs around agent calls, tool calls, steps and cycles.

Transforms chain; the others run in order and are awaited. A hook that raises fails what it
surrounds. On an agent's first call the list for first calls takes the place of its regular twin,
if it holds anything.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, fields
from functools import wraps
from inspect import iscoroutinefunction
from typing import Any, NamedTuple, TypeVar, cast

from stringd.wire.runs.stream import AgentStreamEvent
from stringd.wire.runs.types import AgentCallResult

H = TypeVar("H")
C = TypeVar("C", bound=Callable[..., Any])


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


class HookList(list[H]):
    """Hooks in order: append one, or use the list as a decorator, for plain functions too."""

    def __call__(self, hook: C) -> C:
        self.append(cast("H", hook if iscoroutinefunction(hook) else _awaited(hook)))
        return hook


def _awaited(hook: Callable[..., Any]) -> Callable[..., Awaitable[Any]]:
    @wraps(hook)
    async def awaited(*args: Any) -> Any:
        return hook(*args)

    return awaited


@dataclass
class Hooks:
    """Lists to append to, or decorators. Step and cycle hooks get the name of theirs first."""

    alter_call_message: HookList[AlterText] = field(default_factory=HookList)
    alter_first_call_message: HookList[AlterText] = field(default_factory=HookList)
    before_call: HookList[OnText] = field(default_factory=HookList)
    before_first_call: HookList[OnText] = field(default_factory=HookList)
    after_call_result: HookList[OnResult] = field(default_factory=HookList)
    after_first_call_result: HookList[OnResult] = field(default_factory=HookList)
    alter_response: HookList[AlterText] = field(default_factory=HookList)
    alter_first_response: HookList[AlterText] = field(default_factory=HookList)
    on_stream_event: HookList[OnStream] = field(default_factory=HookList)
    before_tool_call: HookList[OnTool] = field(default_factory=HookList)
    after_tool_call: HookList[OnTool] = field(default_factory=HookList)
    before_step: HookList[OnStep] = field(default_factory=HookList)
    after_step: HookList[OnStep] = field(default_factory=HookList)
    alter_message_before_cycle: HookList[AlterCycle] = field(default_factory=HookList)
    alter_message_after_cycle: HookList[AlterCycle] = field(default_factory=HookList)

    def copy(self) -> "Hooks":
        return Hooks(**{each.name: HookList(getattr(self, each.name)) for each in fields(self)})

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

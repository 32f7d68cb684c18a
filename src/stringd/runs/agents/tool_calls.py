"""The tools of one agent call: each use counted, recorded before it happens, and shown."""

from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET

from stringd.formats.surrogates import without_lone_escapes
from stringd.runs.agents.agent import AgentTurn
from stringd.runs.agents.together import Work, together
from stringd.runs.errors import ExecutionError
from stringd.runs.guard.budget import BudgetError
from stringd.runs.models import port
from stringd.runs.record.recorder import Recorder
from stringd.runs.record.resume import Journal
from stringd.runs.tools.claims import claims_of
from stringd.runs.tools.context import ToolContext
from stringd.runs.tools.output import ToolBrokenError
from stringd.runs.tools.tool import Tool
from stringd.wire.runs import stream


@dataclass
class OpenCall:
    """A tool call that is being made; `key` names it in the timeline."""

    key: str
    asked: int = 0

    def prompt_key(self) -> str:
        """The name of the next prompt this call makes."""
        self.asked += 1
        return f"{self.key}?{self.asked}"


_open_call: ContextVar[OpenCall | None] = ContextVar("open_call", default=None)


def current_call() -> OpenCall | None:
    """The call the present task is making, for what asks the human on its behalf."""
    return _open_call.get()


class _PlacedCall(NamedTuple):
    """A call an answer asked for, its key in the timeline, and its tool if there is one."""

    asked: port.ToolRequested
    key: str
    tool: Tool | None

    @property
    def repeatable(self) -> bool:
        return bool(getattr(self.tool, "repeatable", False))


class ToolUse:
    """`tools` are those the agent may use, `most` is how many may work at once."""

    def __init__(
        self,
        call: AgentTurn,
        context: ToolContext,
        tools: Sequence[Tool],
        recorder: Recorder,
        journal: Journal,
        most: int,
    ) -> None:
        self._call = call
        self._context = context
        self._recorder = recorder
        self._journal = journal
        self._tools = {tool.name: tool for tool in tools}
        self._most = most

    async def use(self, requested: Sequence[port.ToolRequested], turn: int) -> dict[str, Any]:
        """Use tools side by side; returns the message the model reads, in the order it asked.

        All calls are shown before the first is made.
        """
        results: dict[str, stream.ToolResult] = {}
        open_calls: list[_PlacedCall] = []
        keys = [f"{self._call.path}#{turn}.{number}" for number in range(len(requested))]
        for key, asked in zip(keys, requested, strict=True):
            call = _PlacedCall(asked, key, self._tools.get(asked.name))
            before = self._journal.tool_outcome(key)
            if before is None:
                open_calls.append(call)
            else:
                results[key] = _result(asked, call.tool, before.output, before.error or None)
        over = await self._announce(open_calls)
        await together([self._work(call, results) for call in open_calls], self._most)
        if over is not None:
            raise over
        return {"role": "tool", "content": [_content(results[key]) for key in keys]}

    async def _announce(self, calls: list[_PlacedCall]) -> BudgetError | None:
        """Show the calls and count them; those beyond the budget are taken off the list."""
        hooks, info = self._call.agent.hooks, self._call.info
        for place, (asked, _key, tool) in enumerate(calls):
            called = stream.ToolCall(
                tool_call_id=asked.id, tool_name=asked.name, args=_compact(asked)
            )
            called.mcp = getattr(tool, "origin", None) or UNSET
            await self._call.emit(called)
            for hook in hooks.before_tool_call:
                await hook(info, asked.name, asked.args)
            try:
                if not self._is_unknown(calls[place]):
                    self._context.desk.budget.tool_call()
            except BudgetError as error:
                del calls[place:]
                return error
        return None

    def _is_unknown(self, call: _PlacedCall) -> bool:
        """Whether it was begun before a crash and may have had its effect."""
        return self._journal.tool_interrupted(call.key) and not call.repeatable

    def _work(self, call: _PlacedCall, results: dict[str, stream.ToolResult]) -> Work:
        async def begin() -> None:
            results[call.key] = await self._finished(call)

        workspace = self._context.desk.permissions.workspace
        return Work(claims_of(call.tool, as_object(call.asked.args), workspace), begin)

    async def _finished(self, call: _PlacedCall) -> stream.ToolResult:
        asked, key, tool = call
        hooks, info = self._call.agent.hooks, self._call.info
        if self._is_unknown(call):
            result = _result(asked, tool, _INTERRUPTED.format(name=asked.name))
        else:
            result = await self._recorded(call)
        self._recorder.tool_finished(key, result)
        for hook in hooks.after_tool_call:
            await hook(info, asked.name, result.output)
        await self._call.emit(result)
        return result

    async def _recorded(self, call: _PlacedCall) -> stream.ToolResult:
        asked, key, tool = call
        self._recorder.tool_started(key, self._call.agent.name, asked.name, asked.args)
        if not call.repeatable:
            await self._recorder.sync()
        token = _open_call.set(OpenCall(key))
        try:
            return await self._execute(asked, tool)
        finally:
            _open_call.reset(token)

    async def _execute(self, asked: port.ToolRequested, tool: Tool | None) -> stream.ToolResult:
        args = as_object(asked.args)
        if tool is None:
            why = f'Tool "{asked.name}" is not available to this agent'
            return _result(asked, tool, error=why)
        if args is None:
            why = f'Arguments for "{asked.name}" are not a JSON object'
            return _result(asked, tool, error=why)
        try:
            output = (await tool.call(args, self._context)).output
        except ToolBrokenError as error:
            return _result(asked, tool, error=str(error))
        except ExecutionError as error:
            if error.code != ExecutionError.code:
                raise
            output = f"Tool `{asked.name}` threw: {error}"
        except Exception as error:  # noqa: BLE001  # the model is told, whatever a tool throws
            output = f"Tool `{asked.name}` threw: {error}"
        return _result(asked, tool, output)


_INTERRUPTED = (
    "The call of `{name}` was interrupted when the run was; whether it took effect is unknown. "
    "It was not repeated. Look at what is there before you continue."
)


def _content(result: stream.ToolResult) -> dict[str, Any]:
    return {
        "type": "tool-result",
        "toolCallId": result.tool_call_id,
        "toolName": result.tool_name,
        "output": {"type": "text", "value": result.error or result.output},
    }


def _result(
    asked: port.ToolRequested, tool: Tool | None, output: str = "", error: str | None = None
) -> stream.ToolResult:
    return stream.ToolResult(
        tool_call_id=asked.id,
        tool_name=asked.name,
        output="" if error else output,
        status="error" if error else "completed",
        error=error or UNSET,
        mcp=getattr(tool, "origin", None) or UNSET,
    )


def decoded(args: str) -> Any:
    """Arguments as a value, or as the text they are when they are not JSON."""
    try:
        return msgspec.json.decode(args)
    except (msgspec.DecodeError, RecursionError):
        raw = args.encode("utf-8", "replace")
        whole = without_lone_escapes(raw)
        return args if whole == raw else decoded(whole.decode())


def as_object(args: str) -> Mapping[str, Any] | None:
    found = decoded(args or "{}")
    return found if isinstance(found, dict) else None


def _compact(asked: port.ToolRequested) -> str:
    """The arguments as compact JSON text, whatever spacing the model chose."""
    found = as_object(asked.args)
    return asked.args if found is None else msgspec.json.encode(found).decode()

"""The tools of one agent call: each use counted, recorded before it happens, and shown."""

from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec import UNSET

from stringd.runs.agents.agent import AgentTurn
from stringd.runs.errors import ExecutionError
from stringd.runs.models import port
from stringd.runs.record.recorder import Recorder
from stringd.runs.record.resume import Journal
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


class ToolUse:
    """`tools` are those the agent may use."""

    def __init__(
        self,
        call: AgentTurn,
        context: ToolContext,
        tools: Sequence[Tool],
        recorder: Recorder,
        journal: Journal,
    ) -> None:
        self._call = call
        self._context = context
        self._recorder = recorder
        self._journal = journal
        self._tools = {tool.name: tool for tool in tools}

    async def use(self, requested: Sequence[port.ToolRequested], turn: int) -> dict[str, Any]:
        """Use tools in the order they were asked for; returns the message the model reads."""
        results = [
            await self._use(asked, f"{self._call.path}#{turn}.{number}")
            for number, asked in enumerate(requested)
        ]
        content = [
            {
                "type": "tool-result",
                "toolCallId": result.tool_call_id,
                "toolName": result.tool_name,
                "output": {"type": "text", "value": result.error or result.output},
            }
            for result in results
        ]
        return {"role": "tool", "content": content}

    async def _use(self, asked: port.ToolRequested, key: str) -> stream.ToolResult:
        tool = self._tools.get(asked.name)
        before = self._journal.tool_outcome(key)
        if before is not None:
            return _result(asked, tool, before.output, before.error or None)
        hooks, info = self._call.agent.hooks, self._call.info
        called = stream.ToolCall(tool_call_id=asked.id, tool_name=asked.name, args=_compact(asked))
        called.mcp = getattr(tool, "origin", None) or UNSET
        await self._call.emit(called)
        for hook in hooks.before_tool_call:
            await hook(info, asked.name, asked.args)
        if self._journal.tool_interrupted(key) and not getattr(tool, "repeatable", False):
            result = _result(asked, tool, _INTERRUPTED.format(name=asked.name))
        else:
            result = await self._recorded(asked, tool, key)
        self._recorder.tool_finished(key, result)
        for hook in hooks.after_tool_call:
            await hook(info, asked.name, result.output)
        await self._call.emit(result)
        return result

    async def _recorded(
        self, asked: port.ToolRequested, tool: Tool | None, key: str
    ) -> stream.ToolResult:
        self._context.desk.budget.tool_call()
        agent = self._call.agent.name
        self._recorder.tool_started(key, agent, asked.name, asked.args)
        if not getattr(tool, "repeatable", False):
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
        return args


def as_object(args: str) -> Mapping[str, Any] | None:
    found = decoded(args or "{}")
    return found if isinstance(found, dict) else None


def _compact(asked: port.ToolRequested) -> str:
    """The arguments as compact JSON text, whatever spacing the model chose."""
    found = as_object(asked.args)
    return asked.args if found is None else msgspec.json.encode(found).decode()

"""From a tool's name and arguments to its outcome."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, TypeVar

import msgspec

from stringd.formats.duration import USAGE as DURATION_USAGE
from stringd.formats.duration import parse_duration
from stringd.mcp.gate import ExecuteArguments, asking_for, execute
from stringd.mcp.jobs import Jobs, Report
from stringd.mcp.long_texts import PREFIX as TEXT
from stringd.mcp.long_texts import LongTexts
from stringd.mcp.outcome import ToolError, ToolOutcome, failed
from stringd.mcp.ports import Commands, McpCaller, McpPorts, RunsGoneError
from stringd.mcp.run_tools import (
    AnswerArguments,
    RunStatusArguments,
    RunStrategyArguments,
    RunTools,
    SteerArguments,
)
from stringd.mcp.steps import AskedCommand, StringArguments, commands_of
from stringd.mcp.way_on import after_command, after_run_failure, wrong_arguments
from stringd.wire import chanflow
from stringd.wire.exec import command_label
from stringd.wire.result import Result, response_text
from stringd.wire.topic import InvalidTopicError, parse_topic

Filled = Annotated[str, msgspec.Meta(min_length=1)]
_T = TypeVar("_T", bound=msgspec.Struct)
_JOB: Final = "job-"


class _ArgumentsError(Exception):
    """A call that is not what the tool takes: `kind` is that, if there is such a tool."""

    def __init__(self, problem: str, kind: type[msgspec.Struct] | None = None) -> None:
        super().__init__(problem)
        self.kind = kind


class WaitArguments(msgspec.Struct, forbid_unknown_fields=True):
    handle: Filled


class Tools:
    """Every tool of the server."""

    def __init__(self, ports: McpPorts) -> None:
        self._ports = ports
        self._jobs = Jobs(ports.hold)
        self._long_texts = LongTexts()
        self.runs = RunTools(ports.runs, ports.hold)

    async def close(self) -> None:
        """End the calls that continue without their callers."""
        await self._jobs.close()

    async def call(
        self, caller: McpCaller, name: str, arguments: Mapping[str, Any], report: Report
    ) -> ToolOutcome:
        """The outcome of one call; what cannot be done is an outcome too."""
        try:
            outcome = await self._call(caller, name, arguments, report)
            return self._long_texts.shorten(caller.user_id, outcome)
        except ToolError as error:
            return failed(after_run_failure(str(error)))
        except _ArgumentsError as error:
            return failed(wrong_arguments(name, str(error), error.kind))
        except RunsGoneError:
            return failed("The daemon is stopping.")

    async def _call(
        self, caller: McpCaller, name: str, arguments: Mapping[str, Any], report: Report
    ) -> ToolOutcome:
        match name:
            case "string":
                return await self._string(caller, _read(arguments, StringArguments), report)
            case "execute":
                return await self._execute(caller, _read(arguments, ExecuteArguments), report)
            case "wait":
                return await self._wait(caller, _read(arguments, WaitArguments), report)
            case "run_strategy":
                wanted = _read(arguments, RunStrategyArguments)
                return await self.runs.run_strategy(caller, wanted, report)
            case "run_status":
                return await self.runs.run_status(_read(arguments, RunStatusArguments))
            case "answer":
                return await self.runs.answer(caller, _read(arguments, AnswerArguments))
            case "steer":
                return await self.runs.steer(caller, _read(arguments, SteerArguments))
        raise _ArgumentsError(name)

    async def _string(
        self, caller: McpCaller, arguments: StringArguments, report: Report
    ) -> ToolOutcome:
        # The protocol's form names a topic and gets the reply in a block of it.
        in_block = arguments.topic is not None
        asked = commands_of(arguments)
        limit = _limit(arguments.timeout)
        commands = self._ports.commands
        working = asked[0]

        async def run() -> ToolOutcome:
            nonlocal working
            parts: list[str] = []
            for number, working in enumerate(asked, 1):
                result = await self._run(caller, working, limit, brief=not in_block)
                parts.append(_reply(working, result, in_block=in_block))
                if not result.ok:
                    left = len(asked) - number
                    parts += [f"[the {left} after it not run]"] if left else []
                    return ToolOutcome(tuple(parts), is_error=True)
            return ToolOutcome(tuple(parts))

        what = ", ".join(f"{each.topic} {command_label(each.cmd)}" for each in asked)
        return await self._jobs.run(
            caller.user_id, what, run(), report, lambda: _attend(commands, caller, working.topic)
        )

    async def _run(
        self, caller: McpCaller, asked: AskedCommand, limit: float | None, *, brief: bool
    ) -> Result:
        try:
            topic = parse_topic(asked.topic).canonical
        except InvalidTopicError as error:
            return Result.error("INVALID_TARGET", str(error))
        return await self._ports.commands.run(caller, topic, asked.cmd, limit, brief=brief)

    async def _execute(
        self, caller: McpCaller, arguments: ExecuteArguments, report: Report
    ) -> ToolOutcome:
        socket = _gate_socket(caller, self._ports.gate_socket)
        work = execute(socket, arguments, await asking_for(caller))
        return await self._jobs.run(
            caller.user_id, "waiting for the user and the command", work, report
        )

    async def _wait(
        self, caller: McpCaller, arguments: WaitArguments, report: Report
    ) -> ToolOutcome:
        if arguments.handle.startswith(_JOB):
            return await self._jobs.resume(caller.user_id, arguments.handle, report)
        if arguments.handle.startswith(TEXT):
            return self._long_texts.read_on(caller.user_id, arguments.handle)
        return await self.runs.wait(arguments.handle, report)


def _attend(commands: Commands, caller: McpCaller, topic: str) -> float | None:
    try:
        return commands.attend(caller, topic)
    except InvalidTopicError:
        return None


def _reply(asked: AskedCommand, result: Result, *, in_block: bool) -> str:
    """A command's reply as the model reads it; that a page was opened is not news to it."""
    opened = result.message.startswith("Opened ") and "\n" not in result.message
    if not in_block and result.ok and result.content and opened:
        text = result.content
    else:
        # What a file was written with came from the model itself.
        known = not in_block and result.message.startswith(("Written", "Appended"))
        text = response_text(result, with_diff=not known)
    topic = _canonical(asked.topic)
    after = after_command(topic, asked.cmd, result)
    text = "\n".join(filter(None, (text, after, result.note)))
    return chanflow.encode(topic, text) if in_block else text


def _canonical(topic: str) -> str:
    """The topic's full name; what is not a topic stays as it was written."""
    try:
        return parse_topic(topic).canonical
    except InvalidTopicError:
        return topic


def _limit(timeout: str | float | None) -> float | None:
    """The seconds a `timeout` stands for. Raises `ToolError`."""
    if timeout is None:
        return None
    seconds = parse_duration(str(timeout).strip())
    if seconds is None:
        raise ToolError(f"Not a timeout: {timeout}. {DURATION_USAGE}")
    return seconds


def _gate_socket(caller: McpCaller, usual: str) -> str:
    """Where the caller's gate listens: where it says, at the usual place, or in its project."""
    if caller.gate_socket:
        return caller.gate_socket
    beside = Path(caller.cwd, ".stringd", "gate.sock") if caller.cwd else None
    there = beside is not None and not Path(usual).exists() and beside.exists()
    return str(beside) if there else usual


def _read(arguments: Mapping[str, Any], kind: type[_T]) -> _T:
    try:
        return msgspec.convert(dict(arguments), kind)
    except msgspec.ValidationError as error:
        raise _ArgumentsError(str(error), kind) from None

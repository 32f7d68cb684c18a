"""`run_command`: a shell command in its own process group, with a time limit."""

import os
import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from time import monotonic
from typing import Annotated, Any, Final

from msgspec import Meta

from stringd.runs.guard.workspace import WorkspacePath
from stringd.runs.tools.base import Arguments, BuiltInTool
from stringd.runs.tools.context import ToolContext
from stringd.runs.tools.environment import child_environment
from stringd.runs.tools.files import disk
from stringd.runs.tools.files.list import check_folder
from stringd.runs.tools.output import ToolFailure, ToolOutput
from stringd.system.command import Command, CommandEnding

MAX_STREAM: Final = 1024 * 1024
# What the model reads of each stream; all of it would crowd out everything else.
_SHOWN: Final = 100_000
_GRACE_SECONDS: Final = 5.0


class RunCommandArguments(Arguments, frozen=True):
    command: Annotated[str, Meta(min_length=1)]
    cwd: str | None = None
    timeout_ms: Annotated[int, Meta(ge=1, le=600_000)] | None = None
    env: dict[str, str] | None = None


@dataclass
class Stream:
    """The end of what a command printed: errors and results come last."""

    data: bytearray = field(default_factory=bytearray)
    truncated: bool = False

    def feed(self, chunk: bytes) -> None:
        self.data += chunk
        if len(self.data) > MAX_STREAM:
            self.truncated = True
            del self.data[: len(self.data) - MAX_STREAM]

    def text(self) -> str:
        return self.data.decode("utf-8", "replace")


@dataclass
class Ended:
    """How a command ended; `exit_code` is None when a signal ended it."""

    stdout: Stream = field(default_factory=Stream)
    stderr: Stream = field(default_factory=Stream)
    exit_code: int | None = None
    signal: str | None = None
    timed_out: bool = False
    seconds: float = 0.0


class RunCommand(BuiltInTool[RunCommandArguments]):
    name = "run_command"
    description = (
        "Run a shell command. It gets no input and no terminal; background jobs end with it."
    )
    takes = RunCommandArguments
    runs_shell = True

    async def run(self, args: RunCommandArguments, context: ToolContext) -> ToolOutput:
        if "\0" in args.command:
            raise ToolFailure("command_failed", "A command cannot contain a NUL character")
        details: dict[str, Any] = {"command": args.command, "cwd": args.cwd or "."}
        if args.env:
            # What a command does depends on it, so whoever decides must see it.
            details["env"] = args.env
        permissions, agent = context.desk.permissions, context.agent_name
        place = await permissions.path(agent, self.name, "write", args.cwd or ".", details)
        check_folder(place)
        await permissions.command(agent, self.name, args.command, details)
        environment = child_environment({**(args.env or {}), "STRINGD_RUN_ID": context.run_id})
        limit = (args.timeout_ms or 60_000) / 1000
        ended = await execute(args.command, place, environment, limit)
        return _answer(args.command, place, ended, limit)


async def execute(
    command: str, place: WorkspacePath, environment: Mapping[str, str], limit: float
) -> Ended:
    """Run it to its end, or to the time limit; whatever is left of it is killed."""
    shell = "/bin/bash" if os.path.exists("/bin/bash") else "/bin/sh"  # noqa: ASYNC240, PTH110
    began, result = monotonic(), Ended()
    # Where the folder is by now does not matter; the one that was allowed is open.
    with disk.open_folder(place.real) as folder:
        running = Command(
            (shell, "-c", "--", command),
            environment=environment,
            directory=folder,
            out=result.stdout.feed,
            err=result.stderr.feed,
            ends_by=signal.SIGTERM,
        )
    ended = await running.wait(limit, _GRACE_SECONDS)
    result.timed_out = ended.ending is CommandEnding.TIMED_OUT
    if ended.signal is None:
        result.exit_code = ended.status
    else:
        result.signal = ended.signal.name
    result.seconds = monotonic() - began
    return result


def _answer(command: str, place: WorkspacePath, ended: Ended, limit: float) -> ToolOutput:
    data = {
        "command": command,
        "cwd": str(place.real),
        "exitCode": ended.exit_code,
        "signal": ended.signal,
        "stdout": ended.stdout.text(),
        "stderr": ended.stderr.text(),
        "stdoutTruncated": ended.stdout.truncated,
        "stderrTruncated": ended.stderr.truncated,
        "timedOut": ended.timed_out,
        "durationMs": round(ended.seconds * 1000),
        "platform": sys.platform,
    }
    return ToolOutput(_words(ended, limit), data=data)


def _words(ended: Ended, limit: float) -> str:
    good = ended.exit_code == 0 and not ended.timed_out
    lines = [f"STATUS: {'SUCCESS' if good else 'FAILED'}"]
    if ended.timed_out:
        lines.append(f"TIMED OUT after {limit:g} s; the command was ended")
    how = f"SIGNAL: {ended.signal}" if ended.signal else f"EXIT CODE: {ended.exit_code}"
    lines += [how, "STDOUT:", _tail(ended.stdout), "STDERR:", _tail(ended.stderr)]
    return "\n".join(lines)


def _tail(stream: Stream) -> str:
    text = stream.text()
    if len(text) <= _SHOWN and not stream.truncated:
        return text.rstrip("\n")
    return "(the beginning was cut)\n" + text[-_SHOWN:].rstrip("\n")

"""`run_command`: a shell command in its own process group, with a time limit."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
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

MAX_STREAM: Final = 1024 * 1024
# What the model reads of each stream; all of it would crowd out everything else.
_SHOWN: Final = 100_000
_GRACE_SECONDS: Final = 5.0
# When the shell is gone, what its background jobs still print is not waited for.
_LINGER_SECONDS: Final = 0.5


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

    async def fill(self, reader: asyncio.StreamReader) -> None:
        while chunk := await reader.read(65536):
            self.data += chunk
            if len(self.data) > MAX_STREAM:
                self.truncated = True
                del self.data[: len(self.data) - MAX_STREAM]

    def text(self) -> str:
        return self.data.decode("utf-8", "replace")


@dataclass
class Ended:
    """How a command ended."""

    stdout: Stream = field(default_factory=Stream)
    stderr: Stream = field(default_factory=Stream)
    returncode: int = 0
    timed_out: bool = False
    seconds: float = 0.0

    @property
    def signal(self) -> str | None:
        if self.returncode >= 0:
            return None
        try:
            return signal.Signals(-self.returncode).name
        except ValueError:
            return f"SIG{-self.returncode}"


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
    began, ended = monotonic(), Ended()
    async with _pipe(ended.stdout) as stdout, _pipe(ended.stderr) as stderr:
        with disk.open_folder(place.real) as folder:
            process = await asyncio.create_subprocess_exec(
                shell,
                "-c",
                "--",
                command,
                # Where the folder is by now does not matter; the one that was allowed is open.
                cwd=f"/proc/self/fd/{folder}" if sys.platform == "linux" else place.real,
                env=environment,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=stdout.end,
                stderr=stderr.end,
                start_new_session=True,
            )
        try:
            stdout.close_end()
            stderr.close_end()
            ended.timed_out = not await _wait(process, limit)
            if ended.timed_out:
                await _terminate(process)
            await asyncio.wait((stdout.reading, stderr.reading), timeout=_LINGER_SECONDS)
        finally:
            _signal_group(process, signal.SIGKILL)
            with suppress(asyncio.CancelledError):
                await asyncio.shield(process.wait())
    ended.returncode = process.returncode or 0
    ended.seconds = monotonic() - began
    return ended


@dataclass
class _Pipe:
    """`end` is the child's; `reading` is done when nobody can write any more."""

    end: int
    reading: "asyncio.Task[None]"

    def close_end(self) -> None:
        if self.end >= 0:
            os.close(self.end)
            self.end = -1


@asynccontextmanager
async def _pipe(stream: Stream) -> AsyncIterator[_Pipe]:
    """A pipe of our own: asyncio's would keep `wait` waiting for what background jobs hold open."""
    ours, theirs = os.pipe()
    reader = asyncio.StreamReader()
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(ours, "rb", 0)
    )
    pipe = _Pipe(theirs, asyncio.create_task(stream.fill(reader)))
    try:
        yield pipe
    finally:
        pipe.close_end()
        pipe.reading.cancel()
        transport.close()


async def _wait(process: asyncio.subprocess.Process, limit: float) -> bool:
    try:
        async with asyncio.timeout(limit):
            await process.wait()
    except TimeoutError:
        return False
    return True


async def _terminate(process: asyncio.subprocess.Process) -> None:
    _signal_group(process, signal.SIGTERM)
    if not await _wait(process, _GRACE_SECONDS):
        _signal_group(process, signal.SIGKILL)
        await process.wait()


def _signal_group(process: asyncio.subprocess.Process, number: signal.Signals) -> None:
    """The child leads its own session, so its id names its whole group."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


def _answer(command: str, place: WorkspacePath, ended: Ended, limit: float) -> ToolOutput:
    killed = ended.signal is not None
    data = {
        "command": command,
        "cwd": str(place.real),
        "exitCode": None if killed else ended.returncode,
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
    good = ended.returncode == 0 and not ended.timed_out
    lines = [f"STATUS: {'SUCCESS' if good else 'FAILED'}"]
    if ended.timed_out:
        lines.append(f"TIMED OUT after {limit:g} s; the command was ended")
    how = f"SIGNAL: {ended.signal}" if ended.signal else f"EXIT CODE: {ended.returncode}"
    lines += [how, "STDOUT:", _tail(ended.stdout), "STDERR:", _tail(ended.stderr)]
    return "\n".join(lines)


def _tail(stream: Stream) -> str:
    text = stream.text()
    if len(text) <= _SHOWN and not stream.truncated:
        return text.rstrip("\n")
    return "(the beginning was cut)\n" + text[-_SHOWN:].rstrip("\n")

"""`run_command`: a shell command in its own process group, with a time limit."""

import json
import os
import re
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import Annotated, Any, Final, Literal, NamedTuple

from msgspec import Meta

from stringd.net.host_proxy import HostListError, HostProxy, hosts_in
from stringd.net.hosts import Host
from stringd.runs.guard.workspace import WorkspacePath
from stringd.runs.tools.base import Arguments, BuiltInTool
from stringd.runs.tools.context import ToolContext
from stringd.runs.tools.environment import child_environment
from stringd.runs.tools.files import disk
from stringd.runs.tools.files.list import check_folder
from stringd.runs.tools.output import ToolFailure, ToolOutput
from stringd.runs.tools.sandbox import is_wider
from stringd.system.command import Command, CommandEnding
from stringd.system.sandbox import Enclosed, Level, Network, SandboxError

MAX_STREAM: Final = 1024 * 1024
# What the model reads of each stream; all of it would crowd out everything else.
_SHOWN: Final = 100_000
_GRACE_SECONDS: Final = 5.0
_SIGNALLED: Final = 128
_FATAL: Final = frozenset(
    (signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE)
)
_NO_NETWORK: Final = re.compile(
    r"(?i)network is (?:unreachable|down)|(?:could not|couldn't|unable to|failed to) resolve|"
    r"name resolution|name or service not known|ENOTFOUND|EAI_AGAIN|ENETUNREACH|"
    r"getaddrinfo|dial tcp|no route to host|connection refused"
)
_NO_ACCESS: Final = re.compile(
    r"(?i)read-only file system|permission denied|operation not permitted|EROFS|EACCES|EPERM"
)


class RunCommandArguments(Arguments, frozen=True):
    command: Annotated[str, Meta(min_length=1)]
    cwd: str | None = None
    timeout_ms: Annotated[int, Meta(ge=1, le=600_000)] | None = None
    env: dict[str, str] | None = None
    network: (
        Annotated[
            bool | list[str],
            Meta(
                description="hosts to reach by http or https, such as pypi.org or *.example.com, "
                "or true for the whole network; the user is asked"
            ),
        ]
        | None
    ) = None
    sandbox: (
        Annotated[
            Literal["workspace", "open"],
            Meta(description="open: run outside the sandbox; the user is asked"),
        ]
        | None
    ) = None
    reason: Annotated[str, Meta(description="why, for the user who is asked")] | None = None


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
        "Run a shell command. It gets no input and no terminal; background jobs end with it. "
        "It runs in a sandbox: files outside the workspace cannot be changed, and there is no "
        "network unless you ask for it, best by naming the hosts it needs."
    )
    takes = RunCommandArguments
    reads_paths = (".",)  # it may use any file, such as one just written
    runs_shell = True

    async def run(self, args: RunCommandArguments, context: ToolContext) -> ToolOutput:
        if "\0" in args.command:
            raise ToolFailure("command_failed", "A command cannot contain a NUL character")
        details: dict[str, Any] = {"command": args.command, "cwd": args.cwd or "."}
        if args.env:
            # What a command does depends on it, so whoever decides must see it.
            details["env"] = args.env
        sandbox = context.desk.sandbox
        try:
            reach = _reach(args, sandbox.level, walls=await sandbox.has_walls())
        except HostListError as error:
            raise ToolFailure("command_failed", str(error)) from None
        details |= reach.details
        permissions, agent = context.desk.permissions, context.agent_name
        place = await permissions.path(agent, self.name, "write", args.cwd or ".", details)
        check_folder(place)
        # A yes counts for the same command, in the same place, with the same variables and reach.
        scope = json.dumps([str(place.real), args.env or {}, reach.details], sort_keys=True)
        command = await permissions.command(
            agent,
            self.name,
            args.command,
            details,
            scope=scope,
            leaves=reach.leaves,
            editable=True,
        )
        environment = child_environment({**(args.env or {}), "STRINGD_RUN_ID": context.run_id})
        limit = (args.timeout_ms or 60_000) / 1000
        proxy = HostProxy(reach.hosts) if reach.network is Network.HOSTS else None
        try:
            started = await sandbox.enclose(
                (_shell(), "-c", "--", command),
                environment,
                level=reach.level,
                network=reach.network,
                directory=place.real,
                way_out=proxy.way_out if proxy else None,
            )
            ended = await execute(started, place, limit)
        except SandboxError as error:
            raise ToolFailure("command_failed", str(error)) from None
        finally:
            if proxy:
                await proxy.close()
        refused = proxy.refused if proxy else ()
        answer = _answer(command, place, ended, limit, reach, refused)
        if command != args.command:
            told = f"NOTE: The user ran this instead: {command}\n{answer.output}"
            return answer._replace(output=told)
        return answer


class _Reach(NamedTuple):
    """How far a command reaches: what the prompt shows of that, and what has to be asked."""

    level: Level
    network: Network
    details: Mapping[str, str]
    leaves: tuple[str, ...] = ()
    hosts: tuple[Host, ...] = ()


def _reach(args: RunCommandArguments, usual: Level, *, walls: bool) -> _Reach:
    """What the owner allows, or what the agent asks for beyond that. Raises `HostListError`."""
    hosts = hosts_in(args.network) if isinstance(args.network, list) else ()
    if usual is Level.OPEN:
        return _Reach(Level.OPEN, Network.OPEN, {})
    if not walls:
        return _Reach(Level.OPEN, Network.OPEN, {"sandbox": "none"})
    wanted = Level(args.sandbox or usual)
    level = wanted if is_wider(wanted, usual) else usual
    network = Network.OPEN if args.network or level is Level.OPEN else Network.NONE
    if hosts and level is not Level.OPEN:
        network = Network.HOSTS
    listed = ", ".join(map(str, hosts))
    because = f": {args.reason}" if args.reason else ""
    leaves: list[str] = []
    if level is Level.OPEN:
        leaves.append(f"it asks to run outside the sandbox{because}")
    elif level is not usual:
        leaves.append(f"it asks to change files of the workspace{because}")
    if network is Network.OPEN and level is not Level.OPEN:
        leaves.append(f"it asks for the network{because}")
    if network is Network.HOSTS:
        leaves.append(f"it asks to reach {listed}{because}")
    details = {"sandbox": level, "network": listed if network is Network.HOSTS else network}
    return _Reach(level, network, details, tuple(leaves), hosts)


def _shell() -> str:
    return "/bin/bash" if os.path.exists("/bin/bash") else "/bin/sh"  # noqa: PTH110


async def execute(started: Enclosed, place: WorkspacePath, limit: float) -> Ended:
    """Run it to its end, or to the time limit; whatever is left of it is killed."""
    began, result = monotonic(), Ended()
    # Where the folder is by now does not matter; the one that was allowed is open.
    with disk.open_folder(place.real) as folder:
        running = Command(
            started.argv,
            environment=started.environment,
            directory=folder,
            out=result.stdout.feed,
            err=result.stderr.feed,
            ends_by=signal.SIGTERM,
        )
    ended = await running.wait(limit, _GRACE_SECONDS)
    result.timed_out = ended.ending is CommandEnding.TIMED_OUT
    number = ended.signal or _inner_signal(ended.status)
    if number is None:
        result.exit_code = ended.status
    else:
        result.signal = number.name
    result.seconds = monotonic() - began
    return result


def _inner_signal(status: int) -> signal.Signals | None:
    """The signal that ended a command, when a sandbox or a shell passes it on as a number."""
    number = status - _SIGNALLED
    return signal.Signals(number) if number in _FATAL else None


def _answer(
    command: str,
    place: WorkspacePath,
    ended: Ended,
    limit: float,
    reach: _Reach,
    refused: Sequence[str],
) -> ToolOutput:
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
    words = _words(ended, limit)
    hint = _hint(ended, reach, refused)
    return ToolOutput(f"{words}\n{hint}" if hint else words, data=data)


def _hint(ended: Ended, reach: _Reach, refused: Sequence[str]) -> str:
    """How to ask for more, when the sandbox may be why a command failed."""
    if reach.level is Level.OPEN or ended.exit_code == 0:
        return ""
    if refused:
        return (
            f"NOTE: It asked for {', '.join(refused)}, which is not on its list of hosts. "
            "To ask for more, call again with them in network."
        )
    printed = ended.stderr.text()[-_SHOWN:] + ended.stdout.text()[-_SHOWN:]
    if reach.network is Network.NONE and _NO_NETWORK.search(printed):
        return (
            "NOTE: It ran without a network. To ask for one, call again with network: and the "
            "hosts it needs."
        )
    if _NO_ACCESS.search(printed):
        where = "files of the workspace" if reach.level is Level.WORKSPACE else "no files at all"
        return (
            f"NOTE: It ran in a sandbox that can change {where}. To ask to run outside it, "
            'call again with sandbox: "open" and a reason.'
        )
    return ""


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

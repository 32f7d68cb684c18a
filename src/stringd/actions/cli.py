"""Running a CLI action: one bash, its own process group, a small environment, bounded output."""

import asyncio
import os
import signal
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from enum import Enum, auto
from pathlib import Path
from typing import Final, NamedTuple

from stringd.actions.errors import ActionError, payload_error
from stringd.system.environment import ACTION, child_environment

BASH: Final = "/bin/bash"
MAX_OUTPUT_BYTES: Final = 10 * 1024 * 1024
"""Beyond this the beginning is kept: what a template parses must start at its start."""
MAX_VALUE_BYTES: Final = 128 * 1024 - 64
"""The kernel takes no longer argument or environment string."""
GRACE_SECONDS: Final = 0.5


class CommandEnding(Enum):
    """How a command ended."""

    COMPLETED = auto()
    TIMED_OUT = auto()
    CLOSED = auto()
    """The topic was closed, or the daemon stopped."""


class CommandOutput(NamedTuple):
    """What a command left. `text` merges both streams in order of arrival."""

    ending: CommandEnding
    exit_code: int
    text: str
    stdout: str
    stderr: str
    truncated: bool


def command_environment(
    base: Mapping[str, str], own: Mapping[str, str], values: Mapping[str, str]
) -> dict[str, str]:
    """All a command sees: a few names of the daemon's environment, the call's own, its values."""
    return {**child_environment(ACTION, base, additions=own), **values}


class RunningCommand:
    """A started command: await `output`, or `close` it early.

    Popen starts a child without copying the daemon's memory; a pidfd tells of its end.
    """

    def __init__(
        self, text: str, environment: Mapping[str, str], directory: Path, *, split: bool
    ) -> None:
        """Start bash on a program text; `split` keeps the two streams apart.

        Raises `ActionError` when it cannot be started.
        """
        _check_sizes(text, environment)
        self._directory = directory
        self._ending = CommandEnding.COMPLETED
        self._merged = bytearray()
        self._streams: dict[str, bytearray] = {"out": bytearray(), "err": bytearray()}
        self._size = 0
        self._loop = asyncio.get_running_loop()
        self._exited: asyncio.Future[None] = self._loop.create_future()
        self._drained: asyncio.Future[None] = self._loop.create_future()
        try:
            self._process = subprocess.Popen(
                [BASH, "-c", text],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE if split else subprocess.STDOUT,
                cwd=directory,
                env={**environment, "PWD": str(directory)},
                start_new_session=True,
                bufsize=0,
            )
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise ActionError("LOAD_ERROR", f"Cannot run the command: {reason}") from error
        self._pidfd = os.pidfd_open(self._process.pid)
        self._loop.add_reader(self._pidfd, self._ended)
        self._pipes = {
            pipe.fileno(): (name, pipe)
            for name, pipe in (("out", self._process.stdout), ("err", self._process.stderr))
            if pipe is not None
        }
        for descriptor in self._pipes:
            os.set_blocking(descriptor, False)
            self._loop.add_reader(descriptor, self._readable, descriptor)

    @property
    def directory(self) -> str:
        return str(self._directory)

    @property
    def ended(self) -> bool:
        return self._exited.done()

    async def output(self, limit: float) -> CommandOutput:
        """Wait for the end, at most `limit` seconds; its process group does not outlive this."""
        try:
            done, _ = await asyncio.wait({self._exited}, timeout=limit)
            if not done:
                self._ending = CommandEnding.TIMED_OUT
        finally:
            await asyncio.shield(self._end())
        code = self._process.returncode
        ended = self._ending is CommandEnding.COMPLETED and code is not None and code >= 0
        return CommandOutput(
            self._ending,
            code if ended and code is not None else 1,
            _decoded(self._merged),
            _decoded(self._streams["out"]),
            _decoded(self._streams["err"]),
            self._size > MAX_OUTPUT_BYTES,
        )

    async def close(self) -> None:
        """End it; whoever awaits its output gets what there is."""
        if not self._exited.done():
            self._ending = CommandEnding.CLOSED
            await self._terminate()

    async def _end(self) -> None:
        if not self._exited.done():
            await self._terminate()
        # What it printed last is still in the pipe; a background child may hold it open for ever.
        await asyncio.wait({self._drained}, timeout=GRACE_SECONDS)
        self._signal(signal.SIGKILL)
        for descriptor in list(self._pipes):
            self._close_pipe(descriptor)

    async def _terminate(self) -> None:
        self._signal(signal.SIGTERM)
        await asyncio.wait({self._exited}, timeout=GRACE_SECONDS)
        self._signal(signal.SIGKILL)
        await self._exited

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)

    def _ended(self) -> None:
        self._loop.remove_reader(self._pidfd)
        os.close(self._pidfd)
        self._process.wait()
        if not self._exited.done():
            self._exited.set_result(None)

    def _readable(self, descriptor: int) -> None:
        try:
            data = os.read(descriptor, 65536)
        except BlockingIOError:
            return
        if not data:
            self._close_pipe(descriptor)
            return
        room = max(0, MAX_OUTPUT_BYTES - self._size)
        self._size += len(data)
        self._merged += data[:room]
        self._streams[self._pipes[descriptor][0]] += data[:room]

    def _close_pipe(self, descriptor: int) -> None:
        _, pipe = self._pipes.pop(descriptor)
        self._loop.remove_reader(descriptor)
        pipe.close()
        if not self._pipes and not self._drained.done():
            self._drained.set_result(None)


def _check_sizes(text: str, environment: Mapping[str, str]) -> None:
    longest = max(map(len, [text, *environment.values()]))
    if longest > MAX_VALUE_BYTES:
        raise payload_error(
            f"A value of {longest} characters is too long for a command line; "
            f"the limit is {MAX_VALUE_BYTES} bytes. Put it into a file and pass its path."
        )


def _decoded(data: bytearray) -> str:
    return data.decode("utf-8", "replace").rstrip()

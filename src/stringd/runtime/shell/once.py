"""One command in a fresh shell, without a terminal."""

import asyncio
import os
import secrets
from collections.abc import Mapping
from typing import Final

from stringd.runtime.shell import wording
from stringd.runtime.shell.bash import bash_path, starting_directory
from stringd.runtime.shell.errors import ShellUnavailableError, UnusableInputError
from stringd.runtime.shell.output import Output
from stringd.runtime.shell.reply import ShellEnding, ShellReply
from stringd.system.environment import SHELL, child_environment
from stringd.system.processes.child import ChildProcess, start_child
from stringd.system.processes.tree import end_tree

_TIMED_OUT: Final = 124
# A command that a signal ended has no status of its own; the protocol counts it as 1.
_KILLED: Final = 1
_READS_PER_TURN: Final = 16


class OneShot:
    """A started command: await `reply`, or `close` it early."""

    def __init__(
        self,
        command: str,
        *,
        home: str,
        cwd: str,
        base: Mapping[str, str],
        variables: Mapping[str, str] | None = None,
    ) -> None:
        """Start it. Raises `ShellUnavailableError`, `UnusableInputError`."""
        if "\0" in command:
            raise UnusableInputError("Input contains a NUL character, which a shell cannot take.")
        self._cwd = starting_directory(cwd, home)
        self._mark = secrets.token_hex(16)
        self._output = Output()
        self._loop = asyncio.get_running_loop()
        environment = child_environment(
            SHELL, base, home=home, additions=variables, mark=self._mark
        )
        self._pipe, theirs = os.pipe()
        try:
            self._child = _start(command, environment, self._cwd, theirs)
        except OSError as error:
            os.close(self._pipe)
            raise ShellUnavailableError(error.strerror or str(error)) from error
        finally:
            os.close(theirs)
        os.set_blocking(self._pipe, False)
        self._loop.add_reader(self._pipe, self._readable)

    @property
    def directory(self) -> str:
        """Where it runs."""
        return self._cwd

    @property
    def ended(self) -> bool:
        return self._child.exited.done()

    async def reply(self, limit: float) -> ShellReply:
        """How it ended, at most `limit` seconds from now; nothing it started outlives this."""
        try:
            done, _ = await asyncio.wait({self._child.exited}, timeout=limit)
        finally:
            await asyncio.shield(self.close())
        text, truncated = self._output.take(over=True)
        self._output.transcript.close()
        status = self._child.exited.result()
        if not done:
            note = wording.timed_out(limit, killed=True)
            return ShellReply(
                ShellEnding.TIMED_OUT, _TIMED_OUT, self._cwd, text, truncated, (note,)
            )
        if self._child.signal is not None:
            note = wording.killed_by(self._child.signal)
            return ShellReply(ShellEnding.COMPLETED, _KILLED, self._cwd, text, truncated, (note,))
        return ShellReply(ShellEnding.COMPLETED, status, self._cwd, text, truncated)

    async def close(self) -> None:
        """End it and everything it started."""
        await end_tree(self._child, self._mark)
        if self._pipe >= 0:
            while self._read():
                pass
            self._loop.remove_reader(self._pipe)
            os.close(self._pipe)
            self._pipe = -1

    def _readable(self) -> None:
        for _ in range(_READS_PER_TURN):
            if not self._read():
                return

    def _read(self) -> bool:
        if self._pipe < 0:
            return False
        try:
            data = os.read(self._pipe, 65536)
        except (BlockingIOError, InterruptedError):
            return False
        if not data:
            self._loop.remove_reader(self._pipe)
            return False
        self._output.feed(data)
        return True


def _start(command: str, environment: Mapping[str, str], cwd: str, output: int) -> ChildProcess:
    with open(os.devnull, "rb", buffering=0) as nothing:
        return start_child(
            (bash_path(), "-c", command),
            environment=environment,
            cwd=cwd,
            files=(nothing.fileno(), output, output),
        )

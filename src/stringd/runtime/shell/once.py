"""One command in a fresh shell, without a terminal."""

from collections.abc import Mapping
from typing import Final

from stringd.runtime.shell import wording
from stringd.runtime.shell.bash import bash_path, shell_environment, starting_directory
from stringd.runtime.shell.errors import ShellUnavailableError, UnusableInputError
from stringd.runtime.shell.output import Output
from stringd.runtime.shell.reply import ShellEnding, ShellReply
from stringd.runtime.shell.walls import NO_WALLS, ShellWalls
from stringd.system.command import Command, CommandEnding
from stringd.system.vouched import NOTHING_VOUCHED

_TIMED_OUT: Final = 124
# A command that a signal ended has no status of its own; the protocol counts it as 1.
_KILLED: Final = 1


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
        walls: ShellWalls = NO_WALLS,
        caller: Mapping[str, str] = NOTHING_VOUCHED,
    ) -> None:
        """Start it. Raises `ShellUnavailableError`, `UnusableInputError`."""
        if "\0" in command:
            raise UnusableInputError("Input contains a NUL character, which a shell cannot take.")
        self._cwd = starting_directory(cwd, home)
        self._output = Output()
        environment = shell_environment(base, caller, home=home, variables=variables, walls=walls)
        started = walls.enclosed(
            (bash_path(), "-c", command), environment, home=home, cwd=self._cwd, terminal=False
        )
        try:
            self._command = Command(
                started.argv,
                environment=started.environment,
                directory=self._cwd,
                out=self._output.feed,
                sandboxed=walls.closed,
            )
        except OSError as error:
            raise ShellUnavailableError(error.strerror or str(error)) from error

    @property
    def directory(self) -> str:
        """Where it runs."""
        return self._cwd

    @property
    def ended(self) -> bool:
        return self._command.ended

    async def reply(self, limit: float) -> ShellReply:
        """How it ended, at most `limit` seconds from now; nothing it started outlives this."""
        ended = await self._command.wait(limit)
        text, truncated = self._output.take(over=True)
        self._output.transcript.close()
        if ended.ending is CommandEnding.TIMED_OUT:
            note = wording.timed_out(limit, killed=True)
            return ShellReply(
                ShellEnding.TIMED_OUT, _TIMED_OUT, self._cwd, text, truncated, (note,)
            )
        if ended.signal is not None:
            note = wording.killed_by(ended.signal)
            return ShellReply(ShellEnding.COMPLETED, _KILLED, self._cwd, text, truncated, (note,))
        return ShellReply(ShellEnding.COMPLETED, ended.status, self._cwd, text, truncated)

    async def close(self) -> None:
        """End it and everything it started."""
        await self._command.close()

"""Running a CLI action: one bash, its own process group, a small environment, bounded output."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from stringd.actions.errors import ActionError, payload_error
from stringd.system.command import Command, CommandEnding
from stringd.system.detached import DetachedJob
from stringd.system.environment import ACTION, child_environment
from stringd.system.sandbox import Enclosed

BASH: Final = "/bin/bash"
MAX_OUTPUT_BYTES: Final = 10 * 1024 * 1024
"""Beyond this the beginning is kept: what a template parses must start at its start."""
MAX_VALUE_BYTES: Final = 128 * 1024 - 64
"""The kernel takes no longer argument or environment string."""


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


def bash_command(text: str) -> list[str]:
    return [BASH, "-c", text]


class RunningCommand:
    """A started command: await `output`, or `close` it early."""

    def __init__(
        self,
        text: str,
        environment: Mapping[str, str],
        directory: Path,
        *,
        split: bool,
        walls: Enclosed | None = None,
        kept: Callable[[DetachedJob], None] | None = None,
        sandboxed: bool = False,
    ) -> None:
        """Start bash on a program text; `split` keeps the two streams apart.

        `walls` is what to start instead, so that the same runs in a sandbox that keeps jobs where
        it is `sandboxed`. What it detaches is handed to `kept`, or lives on unknown without it.

        Raises `ActionError` when it cannot be started.
        """
        _check_sizes(text, environment)
        self._directory = str(directory)
        self._merged, self._out, self._err = bytearray(), bytearray(), bytearray()
        self._size = 0
        try:
            self._command = Command(
                walls.argv if walls else bash_command(text),
                environment=walls.environment if walls else environment,
                directory=self._directory,
                out=lambda data: self._take(self._out, data),
                err=(lambda data: self._take(self._err, data)) if split else None,
                keeps_detached=True,
                kept=kept,
                sandboxed=sandboxed,
            )
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise ActionError("LOAD_ERROR", f"Cannot run the command: {reason}") from error

    @property
    def directory(self) -> str:
        return self._directory

    @property
    def ended(self) -> bool:
        return self._command.ended

    async def output(self, limit: float) -> CommandOutput:
        """Wait for the end, at most `limit` seconds; its process group does not outlive this."""
        ended = await self._command.wait(limit)
        good = ended.ending is CommandEnding.COMPLETED and ended.signal is None
        return CommandOutput(
            ended.ending,
            ended.status if good else 1,
            _decoded(self._merged),
            _decoded(self._out),
            _decoded(self._err),
            self._size > MAX_OUTPUT_BYTES,
        )

    async def close(self) -> None:
        """End it; whoever awaits its output gets what there is."""
        await self._command.close()

    def _take(self, stream: bytearray, data: bytes) -> None:
        room = max(0, MAX_OUTPUT_BYTES - self._size)
        self._size += len(data)
        self._merged += data[:room]
        stream += data[:room]


def _check_sizes(text: str, environment: Mapping[str, str]) -> None:
    longest = max(map(len, [text, *environment.values()]))
    if longest > MAX_VALUE_BYTES:
        raise payload_error(
            f"A value of {longest} characters is too long for a command line; "
            f"the limit is {MAX_VALUE_BYTES} bytes. Put it into a file and pass its path."
        )


def _decoded(data: bytearray) -> str:
    return data.decode("utf-8", "replace").rstrip()

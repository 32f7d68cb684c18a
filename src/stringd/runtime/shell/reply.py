"""How a command ended, as a value."""

from enum import Enum
from typing import NamedTuple


class ShellEnding(Enum):
    """What state a command is in when its reply is given."""

    COMPLETED = "completed"
    RUNNING = "running"
    """Silent for long; it lives on."""
    WAITING = "waiting"
    """It sleeps until something is typed; it lives on."""
    TIMED_OUT = "timed out"
    SHELL_ENDED = "shell ended"


class ShellReply(NamedTuple):
    """`exit_code` is None while the command lives; `output` is what is new since the last reply."""

    ending: ShellEnding
    exit_code: int | None
    cwd: str
    output: str
    truncated: bool = False
    notes: tuple[str, ...] = ()

    @property
    def alive(self) -> bool:
        return self.ending in (ShellEnding.RUNNING, ShellEnding.WAITING)

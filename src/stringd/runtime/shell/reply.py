"""How a command ended, as a value."""

from enum import Enum
from typing import NamedTuple


class Ending(Enum):
    """Where a command stands when its reply is given."""

    COMPLETED = "completed"
    RUNNING = "running"
    """Silent for long; it lives on."""
    WAITING = "waiting"
    """It sleeps until something is typed; it lives on."""
    TIMED_OUT = "timed out"
    SHELL_ENDED = "shell ended"


class Reply(NamedTuple):
    """`exit_code` is None while the command lives; `output` is what is new since the last reply."""

    ending: Ending
    exit_code: int | None
    cwd: str
    output: str
    truncated: bool = False
    notes: tuple[str, ...] = ()

    @property
    def alive(self) -> bool:
        return self.ending in (Ending.RUNNING, Ending.WAITING)


class Limits(NamedTuple):
    """Times in seconds.

    `quiet` is the silence after which a command is reported as running; one that provably waits
    for input is reported after a tenth of it. `hard` ends a command nobody attended to since.
    `grace` is how long an interrupted command may take to leave.
    """

    hard: float = 120.0
    quiet: float = 10.0
    grace: float = 1.0

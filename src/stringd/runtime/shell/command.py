"""A command given to a shell: what it printed, what state it is in, who waits for it."""

import asyncio
import re
from typing import Final, NamedTuple

from stringd.runtime.shell import wording
from stringd.runtime.shell.output import Output


class ShellLimits(NamedTuple):
    """Times in seconds.

    `quiet` is the silence after which a command is reported as running; one that provably waits
    for input is reported after a tenth of it. `hard` ends a command nobody attended to since.
    `grace` is how long an interrupted command may take to leave.
    """

    hard: float = 120.0
    quiet: float = 10.0
    grace: float = 1.0


_EXIT: Final = re.compile(r"\bexit\b")


class ShellCommand:
    """A command given to a shell; it has a `status` once the shell is back, or gone."""

    def __init__(self, number: int, text: str, now: float, limit: float) -> None:
        self.number = number
        self.limit = limit
        self.deadline = now + limit
        self.text = text
        self.output = Output()
        self.printed_at = now
        self.told_waiting_at: float | None = None
        self.status: int | None = None
        self.expiry: asyncio.TimerHandle | None = None
        self.expired = False
        self.killed = False
        self.attended = 0
        """How many callers wait for its reply."""
        self.asked_again = False
        self.hidden = False
        """Whether only the second question found out that it is over."""
        self._waiting: set[asyncio.Future[None]] = set()

    @property
    def title(self) -> str:
        return wording.title(self.text)

    @property
    def over(self) -> bool:
        return self.status is not None

    def without_farewell(self, text: str) -> str:
        """The output without the word an interactive bash says when it is told to `exit`.

        Only what an EXIT trap prints comes after it.
        """
        if _EXIT.search(self.text) is None:
            return text
        lines = text.split("\n")
        if text.endswith("exit") or "exit" not in lines:
            return text.removesuffix("exit").rstrip()
        del lines[len(lines) - 1 - lines[::-1].index("exit")]
        return "\n".join(lines)

    def finish(self, status: int) -> None:
        if self.status is None:
            self.status = status
        for waiting in self._waiting:
            _wake(waiting)

    async def wait(self, seconds: float) -> None:
        """Return when the command is over, or after that many seconds."""
        if self.over:
            return
        loop = asyncio.get_running_loop()
        waiting = loop.create_future()
        self._waiting.add(waiting)
        timer = loop.call_later(seconds, _wake, waiting)
        try:
            await waiting
        finally:
            timer.cancel()
            self._waiting.discard(waiting)


def _wake(waiting: asyncio.Future[None]) -> None:
    if not waiting.done():
        waiting.set_result(None)

"""What waits, what runs and what has ended, for the person's list. Decides nothing."""

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Final

from stringd.gate.display import pipeline_text
from stringd.gate.pipeline import Outcome
from stringd.gate.validate import ValidatedRequest
from stringd.gate.watch import Signal

MAX_ENDED: Final = 50
# Of all output together; the oldest goes first.
MAX_KEPT: Final = 16 * 1024 * 1024
_MAX_COMMAND: Final = 4096


class Phase(Enum):
    RUNNING = "running"
    WAITING = "waiting"
    ENDED = "ended"


@dataclass(slots=True, eq=False)
class BoardEntry:
    """One request. Its command is kept as text, and its output as long as there is room."""

    command: str
    as_root: bool
    session: str
    at: str
    since: float
    phase: Phase = Phase.WAITING
    # How it ended, in words.
    how: str = ""
    outcome: Outcome | None = None
    ending: Signal | None = None


class Board:
    """Every request in progress, and the last ones that ended."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._open: dict[BoardEntry, None] = {}
        self._ended: deque[BoardEntry] = deque(maxlen=MAX_ENDED)

    def arrived(self, request: ValidatedRequest, *, as_root: bool) -> BoardEntry:
        """A request waits from now on."""
        command = pipeline_text(request.pipeline[:100])[:_MAX_COMMAND]
        at = time.strftime("%H:%M:%S")
        entry = BoardEntry(command, as_root, request.session, at, self._clock())
        with self._lock:
            self._open[entry] = None
        return entry

    def started(self, entry: BoardEntry, ending: Signal) -> None:
        """It runs from now on, until the signal is set."""
        with self._lock:
            entry.phase, entry.ending, entry.since = Phase.RUNNING, ending, self._clock()

    def stopped(self, entry: BoardEntry) -> None:
        """It runs no longer: its signal is about to be gone."""
        with self._lock:
            entry.ending = None

    def ended(self, entry: BoardEntry, how: str, outcome: Outcome | None = None) -> None:
        """It is over."""
        with self._lock:
            if entry not in self._open:
                return
            del self._open[entry]
            entry.phase, entry.how, entry.outcome = Phase.ENDED, how, outcome
            self._ended.appendleft(entry)
            self._drop_output()

    def entries(self) -> list[BoardEntry]:
        """What runs, what waits, and what has ended with the last one first."""
        with self._lock:
            running = [each for each in self._open if each.phase is Phase.RUNNING]
            waiting = [each for each in self._open if each.phase is Phase.WAITING]
            return [*running, *waiting, *self._ended]

    def abort(self, entry: BoardEntry) -> bool:
        """End a command that runs; False if it does not."""
        with self._lock:
            if entry.ending is None:
                return False
            entry.ending.set()
            return True

    def seconds(self, entry: BoardEntry) -> int:
        """For how long it has been waiting or running."""
        return round(self._clock() - entry.since)

    def _drop_output(self) -> None:
        kept = 0
        for entry in self._ended:
            if entry.outcome is None:
                continue
            kept += entry.outcome.stdout.kept + sum(each.kept for each in entry.outcome.stderrs)
            if kept > MAX_KEPT:
                entry.outcome = None
                entry.how += ", output no longer kept"

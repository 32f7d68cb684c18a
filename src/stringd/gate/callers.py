"""Who asks, told apart by the kernel's word, and how much of the gate one caller may take.

A caller is the outermost program of its own tree: the shell of a terminal, a daemon, an editor. So
one agent is one caller, however many processes it starts to ask.
"""

import os
import threading
import time
from collections import Counter
from collections.abc import Callable
from functools import cache
from typing import Final, NamedTuple

from stringd.gate.errors import BusyError
from stringd.gate.peers import executable_of

MAX_IN_FLIGHT: Final = 64
MAX_PER_CALLER: Final = 16
# How long a caller is held off after the key that denies everything it asks.
HOLD_SECONDS: Final = 300.0
_MAX_HELD: Final = 1000
_DEEPEST: Final = 100


class CallerId(NamedTuple):
    """A process that cannot be mistaken for a later one of the same number."""

    pid: int
    started: int


def caller_of(pid: int, uid: int) -> CallerId:
    """The outermost process of the same account above this one, short of those above the gate."""
    ours = _ancestors(os.getpid())
    parent, started = _parent_and_start(pid)
    found = CallerId(pid, started)
    for _ in range(_DEEPEST):
        if parent <= 1 or parent in ours or _uid(parent) != uid or _manages_services(parent):
            break
        above, started = _parent_and_start(parent)
        found, parent = CallerId(parent, started), above
    return found


AGENTS: Final = frozenset(
    {"claude", "codex", "gemini", "cursor-agent", "opencode", "aider", "goose", "amp", "copilot"}
)
"""Names that agents give their processes."""


def agent_of(pid: int) -> str:
    """The nearest agent at or above a process, by the name it gave itself; or nothing."""
    for _ in range(_DEEPEST):
        if (name := _name(pid)) in AGENTS:
            return f"{name} (pid {pid})"
        pid = _parent_and_start(pid)[0]
        if pid <= 1:
            break
    return ""


def program_of(pid: int, uid: int) -> str:
    """A process of this account by its program; or nothing if there is none of that number."""
    if pid <= 0 or _uid(pid) != uid:
        return ""
    return f"{executable_of(pid)} (pid {pid})"


class Callers:
    """Places for requests in progress, in all and for each caller, and who is held off."""

    def __init__(
        self,
        limit: int = MAX_IN_FLIGHT,
        per_caller: int = MAX_PER_CALLER,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._limit = limit
        self._per_caller = per_caller
        self._clock = clock
        self._lock = threading.Lock()
        self._taken: Counter[CallerId] = Counter()
        self._held_off: dict[CallerId, float] = {}

    @property
    def taken(self) -> int:
        return self._taken.total()

    @property
    def are_full(self) -> bool:
        return self.taken >= self._limit

    def take(self, caller: CallerId) -> Callable[[], None]:
        """A place, as the call that gives it back; giving it back twice is harmless.

        Raises `BusyError` when there is none left, or none for this caller.
        """
        with self._lock:
            if self.are_full or self._taken[caller] >= self._per_caller:
                raise BusyError
            self._taken[caller] += 1
        held = [True]

        def free() -> None:
            with self._lock:
                self._taken[caller] -= len(held)
                held.clear()
                if not self._taken[caller]:
                    del self._taken[caller]

        return free

    def hold_off(self, caller: CallerId) -> None:
        """Deny whatever this caller asks from now on, for a while."""
        with self._lock:
            now = self._clock()
            self._held_off = {each: end for each, end in self._held_off.items() if end > now}
            if len(self._held_off) < _MAX_HELD:
                self._held_off[caller] = now + HOLD_SECONDS

    def is_held_off(self, caller: CallerId) -> bool:
        return self._held_off.get(caller, 0.0) > self._clock()


@cache
def _ancestors(pid: int) -> set[int]:
    """Of ourselves, and so looked up once."""
    found: set[int] = set()
    while pid > 0 and pid not in found:
        found.add(pid)
        pid = _parent_and_start(pid)[0]
    return found


def _parent_and_start(pid: int) -> tuple[int, int]:
    """Zeros for a process that is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            # The name in parentheses may hold anything, so count from its end.
            fields = file.read().rpartition(b")")[2].split()
        return int(fields[1]), int(fields[19])
    except (OSError, ValueError, IndexError):
        return 0, 0


def _uid(pid: int) -> int:
    # Not the owner of its directory: that is root where a process does not let itself be traced.
    try:
        with open(f"/proc/{pid}/status", "rb") as file:
            return int(file.read().partition(b"\nUid:")[2].split()[0])
    except (OSError, ValueError, IndexError):
        return -1


def _manages_services(pid: int) -> bool:
    """Whether it starts what has nothing to do with each other, like the user's systemd."""
    return _name(pid) in ("systemd", "init", "launchd", "runit", "s6-svscan")


def _name(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/comm", "rb") as file:
            return file.read().decode("utf-8", "replace").strip()
    except OSError:
        return ""

"""Which processes a daemon started, and whether one of those holds a socket.

A daemon lowers a limit of its own that has had no effect since Linux 2.4: the number of file
locks. Every process inherits the lowered limit, and only root can raise it again, so a process
that a daemon started is known by it however it forked, changed its session or emptied its
environment, and also when that daemon was killed.

The number says which daemon it was: the upper half is drawn by a daemon that no other started, and
all below it share it; the lower half is drawn again, and lower, by each daemon inside another's
process tree, so that it counts its own children, not the processes beside it; unless it serves
what is the owner's, where nothing that any daemon started decides.
"""

import os
import resource
from collections.abc import Iterator
from contextlib import suppress
from typing import Final, NamedTuple, Protocol

from stringd.system.processes.table import find, holds, program

_RLIMIT_LOCKS: Final = 10
_LOWER_BITS: Final = 30
_LOWER: Final = (1 << _LOWER_BITS) - 1
_HIGHEST_MARK: Final = 2**62 - 1
_LOWEST_MARK: Final = 2**61
"""So high that it is never taken for a limit somebody chose."""
_STEP: Final = 1 << 20
"""How far below the daemon around it a daemon draws its number."""
_UNLIMITED: Final = float("inf")
_serves_the_owner: Final[list[bool]] = []
"""Not empty in a daemon to which everything that any daemon started is a child."""
_GONE: Final = (FileNotFoundError, ProcessLookupError, PermissionError, NotADirectoryError)


class Program(NamedTuple):
    """A running process, and what it calls itself."""

    pid: int
    name: str


class Speaker(Protocol):
    """Who is at the other end of a connection."""

    async def outsider(self) -> Program | None:
        """The program that speaks; None for what a daemon started, and in doubt."""


class Marks(NamedTuple):
    """The numbers that only processes started by one daemon have, by those of daemons among
    them too where no other daemon is around it."""

    lowest: int
    highest: int

    @property
    def sound(self) -> bool:
        """Whether a daemon could have drawn them."""
        return self.lowest <= self.highest and _same_family(self.lowest, self.highest)

    def include(self, number: float) -> bool:
        return self.lowest <= number <= self.highest


def mark_descendants(*, for_the_owner: bool = False) -> Marks | None:
    """Make what this process starts from now on known as started by a daemon; called once.

    With `for_the_owner`, whatever any daemon started counts as started by this one: a child must
    not become the owner by starting a daemon of its own.
    None where the limit is so low already that no number is left to tell this daemon by.
    """
    _serves_the_owner.extend([True] if for_the_owner else [])
    _, hard = resource.getrlimit(_RLIMIT_LOCKS)
    unlimited = hard == resource.RLIM_INFINITY
    marks = _draw(None if unlimited or hard > _HIGHEST_MARK else hard)
    number = hard - 1 if marks is None else marks.highest
    if number >= 0:
        resource.setrlimit(_RLIMIT_LOCKS, (number, number))
    return marks


def _draw(outer: int | None) -> Marks | None:
    """Numbers that no other daemon has, below the limit there is already."""
    import secrets  # what ends the processes of a killed daemon starts without it

    if outer is None:
        family = _LOWEST_MARK | secrets.randbits(61 - _LOWER_BITS) << _LOWER_BITS
        return Marks(family, family | _LOWER)
    number = outer - 1 - secrets.randbelow(_STEP)
    return Marks(number, number) if _same_family(number, outer) else None


def is_descendant(pid: int) -> bool:
    """Whether this process, or a daemon that ended, started the process. In doubt it did."""
    theirs, mark = lock_limit(pid), lock_limit(os.getpid())
    if theirs is None or mark is None:
        return True
    if _serves_the_owner:
        marked = _is_mark(theirs) or theirs <= mark < _UNLIMITED
    elif _same_family(theirs, mark) or not _is_mark(mark):
        # What a daemon around this one started has a higher number.
        marked = theirs <= mark < _UNLIMITED
    else:
        marked = _is_mark(theirs)
    return marked or os.getpid() in _ancestry(pid)


def started_by_a_daemon() -> bool:
    """Whether a daemon started the calling process, directly or not."""
    _, hard = resource.getrlimit(_RLIMIT_LOCKS)
    return _is_mark(hard)


def outsider_holding(inode: int) -> Program | None:
    """The process at a socket, when nothing that a daemon started holds that socket too.

    None also when no holder can be found: those of other accounts are not shown to us. Looks
    through every process, so call it in a thread, and only when it matters.
    """
    found: Program | None = None
    for pid in _processes():
        if holds_socket(pid, inode):
            if is_descendant(pid):
                return None
            found = found or Program(pid, program(pid))
    return found


def is_marked(pid: int) -> bool:
    """Whether any daemon started the process. In doubt one did."""
    limit = lock_limit(pid)
    return limit is None or _is_mark(limit)


def _processes() -> Iterator[int]:
    return (int(name) for name in os.listdir("/proc") if name.isdigit())  # noqa: PTH208


def holds_socket(pid: int, inode: int) -> bool:
    """Whether a process that we may look at has a socket open."""
    return holds(pid, (f"socket:[{inode}]",))


def _is_mark(number: float) -> bool:
    return _LOWEST_MARK <= number <= _HIGHEST_MARK


def _same_family(one: float, other: float) -> bool:
    marks = _is_mark(one) and _is_mark(other)
    return marks and int(one) >> _LOWER_BITS == int(other) >> _LOWER_BITS


def lock_limit(pid: int) -> float | None:
    """The limit a process was given, which tells the daemon that started it; None if it is gone."""
    # Not `prlimit`: it refuses a process of ours that is in another group.
    with suppress(*_GONE), open(f"/proc/{pid}/limits", encoding="ascii") as file:
        line = next((line for line in file if line.startswith("Max file locks")), "")
        hard = line.split()[-2:-1]
        return _UNLIMITED if hard == ["unlimited"] else int(hard[0]) if hard else None
    return None


def temporary_prefix() -> str:
    """How the name of a temporary directory begins, so that it is found by the mark of its daemon
    when nobody was left to remove it.
    """
    mark = lock_limit(os.getpid())
    return "stringd-" if mark is None or mark == _UNLIMITED else f"stringd-{int(mark):x}-"


def _ancestry(pid: int) -> Iterator[int]:
    """The process and those it descends from, as far as there are any."""
    while (process := find(pid)) is not None:
        yield pid
        pid = process.parent

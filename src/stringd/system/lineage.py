"""Which processes a daemon started, and whether one of those holds a socket.

A daemon lowers a limit of its own that has had no effect since Linux 2.4: the number of file
locks. Every process inherits the lowered limit, and only root can raise it again, so a process
that a daemon started is known by it however it forked, changed its session or emptied its
environment, and also when that daemon was killed. A daemon inside another's process tree lowers
the limit further, so it counts its own children, not the processes beside it.
"""

import os
import resource
from collections.abc import Iterator
from contextlib import suppress
from typing import Final, NamedTuple, Protocol

from stringd.system.processes.table import descendants, find, program

_RLIMIT_LOCKS: Final = 10
_HIGHEST_MARK: Final = 2**62 - 1
"""So high that it is never taken for a limit somebody chose."""
_UNLIMITED: Final = float("inf")
_GONE: Final = (FileNotFoundError, ProcessLookupError, PermissionError, NotADirectoryError)


class Program(NamedTuple):
    """A running process, and what it calls itself."""

    pid: int
    name: str


class Speaker(Protocol):
    """Who is at the other end of a connection."""

    async def outsider(self) -> Program | None:
        """The program that speaks; None for what a daemon started, and in doubt."""


def mark_descendants() -> None:
    """Make what this process starts from now on known as started by a daemon; called once."""
    _, hard = resource.getrlimit(_RLIMIT_LOCKS)
    mark = _HIGHEST_MARK if hard == resource.RLIM_INFINITY else min(_HIGHEST_MARK, hard - 1)
    if mark >= 0:
        resource.setrlimit(_RLIMIT_LOCKS, (mark, mark))


def is_descendant(pid: int) -> bool:
    """Whether this process, or a daemon that ended, started the process. In doubt it did."""
    theirs, mark = _lock_limit(pid), _lock_limit(os.getpid())
    if theirs is None or mark is None:
        return True
    return theirs <= mark < _UNLIMITED or os.getpid() in _ancestry(pid)


def started_by_a_daemon() -> bool:
    """Whether a daemon started the calling process, directly or not."""
    _, hard = resource.getrlimit(_RLIMIT_LOCKS)
    return _HIGHEST_MARK // 2 < hard <= _HIGHEST_MARK


def outsider_holding(inode: int) -> Program | None:
    """The process at a socket, when nothing that a daemon started holds that socket too.

    None also when no holder can be found: those of other accounts are not shown to us. Looks
    through every process, so call it in a thread, and only when it matters.
    """
    found: Program | None = None
    for pid in _processes():
        if _holds(pid, inode):
            if is_descendant(pid):
                return None
            found = found or Program(pid, program(pid))
    return found


class NetworkWalls:
    """Whether sandboxes of this process share its network, and so reach its ports."""

    def __init__(self) -> None:
        self._made = False

    def note(self) -> None:
        """One that does is about to be made."""
        self._made = True

    def hold(self, inode: int) -> bool:
        """Whether a socket is in the hands of what runs in one of them. In doubt it is.

        Costs nothing before the first was made, else a look through our descendants and, while
        there are such, through processes until one that holds the socket is found.
        """
        if not self._made or not any(_is_walled(each.pid) for each in descendants(os.getpid())):
            return False
        # The newest first: most clients have just been started.
        holder = next((pid for pid in sorted(_processes(), reverse=True) if _holds(pid, inode)), 0)
        return not holder or (is_descendant(holder) and _is_walled(holder))


network_walls: Final = NetworkWalls()


def _is_walled(pid: int) -> bool:
    """Whether a filter on system calls holds the process, as in each of our sandboxes."""
    with suppress(*_GONE), open(f"/proc/{pid}/status", "rb") as file:
        return b"\nSeccomp:\t2\n" in file.read()
    return False


def _processes() -> Iterator[int]:
    return (int(name) for name in os.listdir("/proc") if name.isdigit())  # noqa: PTH208


def _holds(pid: int, inode: int) -> bool:
    wanted, directory = f"socket:[{inode}]", f"/proc/{pid}/fd"
    with suppress(*_GONE):
        for name in os.listdir(directory):  # noqa: PTH208
            # One that was closed meanwhile hides no other.
            with suppress(*_GONE):
                if os.readlink(f"{directory}/{name}") == wanted:  # noqa: PTH115
                    return True
    return False


def _lock_limit(pid: int) -> float | None:
    # Not `prlimit`: it refuses a process of ours that is in another group.
    with suppress(*_GONE), open(f"/proc/{pid}/limits", encoding="ascii") as file:
        line = next((line for line in file if line.startswith("Max file locks")), "")
        hard = line.split()[-2:-1]
        return _UNLIMITED if hard == ["unlimited"] else int(hard[0]) if hard else None
    return None


def _ancestry(pid: int) -> Iterator[int]:
    """The process and those it descends from, as far as there are any."""
    while (process := find(pid)) is not None:
        yield pid
        pid = process.parent

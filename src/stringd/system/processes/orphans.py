"""Processes whose parent ended: the kernel hands them to this process.

A shell that ends leaves its jobs to us (`adopt_orphans` asked for it), so they can be found,
ended and collected, whoever runs as process 1. Children that others of this process started and
wait for themselves are left alone.
"""

import os
from contextlib import suppress
from time import monotonic
from typing import Final

from stringd.system.processes.table import ProcessEntry, carries_mark, children, descendants, find

_PR_SET_CHILD_SUBREAPER: Final = 36
# A child somebody waits for is collected at once; one that lay around this long never will be.
_ABANDONED_SECONDS: Final = 10.0

_NO_SESSION: Final = -1

_own: set[int] = set()
_seen_dead: dict[tuple[int, int], float] = {}


def adopt_orphans() -> None:
    """Make the calling process the parent of orphaned descendants; survives exec."""
    import ctypes  # the daemon starts without it

    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def claim(pid: int) -> None:
    """A child of ours that is not an orphan, until `disclaim`."""
    _own.add(pid)


def disclaim(pid: int) -> None:
    _own.discard(pid)


def orphans_of(session: int, mark: str) -> list[ProcessEntry]:
    """What a child that is gone left behind, in its session or carrying its mark."""
    found: list[ProcessEntry] = []
    for orphan in _orphans():
        if orphan.alive and (orphan.session == session or carries_mark(orphan.pid, mark)):
            found += [orphan, *descendants(orphan.pid)]
    return found


def collect(session: int, ended: set[int]) -> None:
    """Free the process table of orphans that were of a session or are known to have ended."""
    now = monotonic()
    dead = [orphan for orphan in _orphans() if not orphan.alive]
    # What others have collected meanwhile need not be remembered.
    for gone in _seen_dead.keys() - {(orphan.pid, orphan.started) for orphan in dead}:
        del _seen_dead[gone]
    for orphan in dead:
        since = _seen_dead.setdefault((orphan.pid, orphan.started), now)
        known = orphan.session == session or orphan.pid in ended
        if known or now - since > _ABANDONED_SECONDS:
            del _seen_dead[orphan.pid, orphan.started]
            with suppress(ChildProcessError):
                os.waitpid(orphan.pid, os.WNOHANG)


def collect_abandoned() -> None:
    """Free the process table of orphans nobody asked about; called every few seconds."""
    collect(_NO_SESSION, set())


def _orphans() -> list[ProcessEntry]:
    """Our children that nobody claimed: orphans, and children of other parts of this process."""
    found = (find(pid) for pid in children(os.getpid()) if pid not in _own)
    return [process for process in found if process is not None]

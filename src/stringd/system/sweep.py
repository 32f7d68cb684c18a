"""Ending everything that a daemon started and left running.

A process counts when it has one of the daemon's marks (`system.lineage`), which no other process
can have, or descends from one that has. It is killed through a handle on exactly that process, and
only if it is not older than the daemon, so an id that was given to another one is safe.
"""

import os
import select
import signal
import time
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import Final

from stringd.system.lineage import Marks, lock_limit
from stringd.system.processes.table import ProcessEntry, everyone, find, send_signal

TEMPORARY: Final = Path("/tmp")  # noqa: S108 - where the sandbox launcher makes its directories
PREFIX: Final = "stringd-"
# A process that the kernel cannot end (it waits for a disk) is not waited for longer.
_LONGEST_SECONDS: Final = 20.0
_PAUSE_SECONDS: Final = 0.005
_POLITE: Final = (signal.SIGHUP, signal.SIGTERM, signal.SIGCONT)
# Nothing can fork between the first and the last of them.
_AT_ONCE: Final = (signal.SIGSTOP, signal.SIGKILL)


def end_started(
    marks: Marks, since: int, *, spared: Collection[int] = (), grace: float = 0.0
) -> list[ProcessEntry]:
    """End what carries one of `marks` and was started at `since` or later; whom it found.

    With a `grace` they are asked to end first. Returns when none is left. Takes time: not for the
    loop of a daemon.
    """
    found: dict[int, ProcessEntry] = {}
    now = time.monotonic()
    polite, over = now + grace, now + grace + _LONGEST_SECONDS
    asked = set[int]()
    while remaining := started(marks, since, spared):
        found |= {process.pid: process for process in remaining}
        waits = time.monotonic() < polite
        if waits:
            remaining = [process for process in remaining if process.pid not in asked]
            asked |= {process.pid for process in remaining}
        for number in _POLITE if waits else _AT_ONCE:
            for process in remaining:
                send_signal(process, number)
        if time.monotonic() > over:
            break
        time.sleep(_PAUSE_SECONDS)
    remove_temporary(marks)
    return list(found.values())


def sweep_when_gone(path: str, pid: str, since: str, lowest: str, highest: str) -> None:
    """What the keeper becomes: wait for the end of the daemon, end what it left, and forget it."""
    daemon = find(int(pid))
    if daemon is not None and daemon.started == int(since):
        with suppress(ProcessLookupError):
            select.select([os.pidfd_open(daemon.pid)], [], [])
    end_started(Marks(int(lowest), int(highest)), int(since))
    with suppress(OSError):
        os.unlink(path)  # noqa: PTH108 - a text is what it was given


def started(marks: Marks, since: int, spared: Collection[int] = ()) -> list[ProcessEntry]:
    """The living processes with one of the marks and their descendants, parents first: a shell
    must not continue with its next command because the present one was ended."""
    below: dict[int, list[ProcessEntry]] = {}
    pending: list[ProcessEntry] = []
    for process in everyone():
        below.setdefault(process.parent, []).append(process)
        if process.started >= since and marks.include(lock_limit(process.pid) or 0):
            pending.append(process)
    marked = {process.pid for process in pending}
    pending = [process for process in pending if process.parent not in marked]
    found: list[ProcessEntry] = []
    while pending:
        found += pending
        pending = [child for process in pending for child in below.get(process.pid, ())]
    return [each for each in found if each.alive and each.pid not in (os.getpid(), *spared)]


def remove_temporary(marks: Marks) -> None:
    """Remove the directories that sandboxes of the daemon had for themselves."""
    for path in TEMPORARY.glob(f"{PREFIX}*-*"):
        with suppress(ValueError):
            if marks.include(int(path.name.split("-")[1], 16)):
                import shutil

                shutil.rmtree(path, ignore_errors=True)

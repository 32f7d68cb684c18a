"""Ends everything a command started, also what root owns. Never waits without limit."""

import os
import select
import signal
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from stringd.gate.resolve import resolve

GRACE_SECONDS: Final = 3.0
# For a sudo that may not kill for us, but passes on what it is sent itself.
RELAY_SECONDS: Final = 1.0
_ROUNDS: Final = 3
QUIET: Final = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in (0, 1, 2)]
ALL_SIGNALS: Final = signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}


class Process(NamedTuple):
    pid: int
    parent: int
    group: int
    session: int


class Child:
    """A started process of ours that has not been reaped."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.pidfd = os.pidfd_open(pid)

    def reap(self) -> int:
        """The exit code, negative for a signal. Call it when `pidfd` is readable."""
        _, status = os.waitpid(self.pid, 0)
        os.close(self.pidfd)
        return os.waitstatus_to_exitcode(status)

    def ends_within(self, seconds: float) -> bool:
        return _ends_within(self.pidfd, seconds)


def end(children: Iterable[Child], sudo: str | None) -> list[int]:
    """Kill these children and all they started, reap them, and tell which could not be ended.

    With `sudo`, what belongs to root is killed through it, on the authentication just given.
    """
    ours = {child.pid: child for child in children}
    deadline = time.monotonic() + GRACE_SECONDS
    survivors: set[int] = set()
    for _ in range(_ROUNDS):
        survivors |= set(_end_all(family(ours), ours, sudo, deadline))
        # Killed in one go, but one of them may have started another just before.
        if set(family(ours)) <= ours.keys() | survivors:
            break
    for child in ours.values():
        if child.ends_within(deadline - time.monotonic()):
            child.reap()
        else:
            leave_to_end(child)
    return sorted(survivors)


def leave_to_end(child: Child) -> None:
    """Reap a child whenever it ends; nobody waits for it."""
    threading.Thread(target=child.reap, daemon=True, name="reaper").start()


def _end_all(
    pids: list[int], ours: Iterable[int], sudo: str | None, deadline: float
) -> Iterator[int]:
    """Kill these processes; those that are still there at the deadline."""
    handles = {pid: handle for pid in pids if (handle := _handle(pid)) is not None}
    try:
        if sudo is not None:
            _end_roots(handles, ours, sudo, deadline)
        for pid in handles:
            _kill(pid)
        for pid, handle in handles.items():
            if not _ends_within(handle, deadline - time.monotonic()):
                yield pid
    finally:
        for handle in handles.values():
            os.close(handle)


def _end_roots(handles: Mapping[int, int], ours: Iterable[int], sudo: str, deadline: float) -> None:
    """End what we may not signal: through sudo, else by asking the sudo in front to pass it on."""
    roots = [pid for pid in handles if not _may_signal(pid)]
    if not roots:
        return
    _kill_as_root(sudo, roots)
    if all(_ends_within(handles[pid], 0) for pid in roots):
        return
    for pid in ours:
        _kill(pid, signal.SIGTERM)
    patience = min(deadline, time.monotonic() + RELAY_SECONDS)
    for pid in roots:
        _ends_within(handles[pid], patience - time.monotonic())


def _handle(pid: int) -> int | None:
    try:
        return os.pidfd_open(pid)
    except OSError:
        return None


def _ends_within(pidfd: int, seconds: float) -> bool:
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    return bool(poll.poll(max(0, seconds) * 1000))


def family(pids: Iterable[int]) -> list[int]:
    """These processes and everything descended from them, or in a group or session of theirs.

    A member that left its parent is still found by its group, unless it left that as well.
    """
    table = list(_processes())
    members = set(pids)
    ours = os.getpgrp(), os.getsid(0)
    while True:
        groups = {p.group for p in table if p.pid in members} - {ours[0], 0}
        sessions = {p.session for p in table if p.pid in members} - {ours[1], 0}
        found = {
            p.pid
            for p in table
            if p.parent in members or p.group in groups or p.session in sessions
        }
        if found <= members:
            return sorted(members, reverse=True)
        members |= found


def _processes() -> Iterable[Process]:
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            # The name in parentheses may hold anything, so count from its end.
            fields = (entry / "stat").read_bytes().rpartition(b")")[2].split()
        except OSError:
            continue
        yield Process(int(entry.name), int(fields[1]), int(fields[2]), int(fields[3]))


def _kill(pid: int, number: int = signal.SIGKILL) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def _may_signal(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return True


def _kill_as_root(sudo: str, pids: list[int]) -> None:
    kill = resolve("kill").path
    if kill is None:
        return
    words = [sudo, "-n", "--", kill, "-KILL", *map(str, pids)]
    try:
        pid = os.posix_spawn(
            sudo, words, os.environ, file_actions=QUIET, setsigmask=[], setsigdef=ALL_SIGNALS
        )
    except OSError:
        return
    child = Child(pid)
    if child.ends_within(GRACE_SECONDS):
        child.reap()
    else:
        leave_to_end(child)

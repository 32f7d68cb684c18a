"""Three processes: one the caller knows, one that keeps watch, and the command.

The keeper adopts whatever the command leaves behind, and ends all of it when the command has ended
or when the process the caller knows is gone, however it went.
"""

import os
import select

from . import kernel

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

_SIGNALLED = 128


def run(command: "Callable[[], NoReturn]", clean_up: "Callable[[], None]", terminal: bool) -> int:
    """Run `command` in a process of its own; its exit code, or 128 and the number of its signal."""
    kernel.be_unreadable()
    kernel.die_with_parent()
    kernel.ignore_keyboard()
    kernel.adopt_orphans()
    alive, held = os.pipe()
    keeper = os.fork()
    if keeper == 0:
        os.close(held)
        os._exit(_keep(alive, command, clean_up, terminal))
    os.close(alive)
    code = os.waitstatus_to_exitcode(os.waitpid(keeper, 0)[1])
    if code >= 0:
        return code
    # Somebody killed the keeper, so what it kept is ours now.
    end_descendants()
    clean_up()
    return _SIGNALLED - code


def end_descendants() -> None:
    """Kill every process that is left below this one, until none is."""
    while True:
        for pid in descendants(os.getpid()):
            _kill(pid)
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def descendants(root: int) -> "list[int]":
    """The ids of all processes below one."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            children.setdefault(_parent(name), []).append(int(name))
    found: list[int] = []
    pending = [root]
    while pending:
        inside = children.get(pending.pop(), [])
        found += inside
        pending += inside
    return found


def _keep(
    alive: int, command: "Callable[[], NoReturn]", clean_up: "Callable[[], None]", terminal: bool
) -> int:
    # Out of the group of the process the caller knows: a signal to that group must not end both.
    if terminal:
        os.setpgid(0, 0)
    else:
        os.setsid()
    started = os.fork()
    if started == 0:
        _lead(terminal)
        command()
    kernel.adopt_orphans()
    poll = select.poll()
    poll.register(alive, select.POLLIN)
    poll.register(os.pidfd_open(started), select.POLLIN)
    poll.poll()
    # If it has ended, it keeps its status: killing a zombie changes nothing.
    _kill(started)
    code = os.waitstatus_to_exitcode(os.waitpid(started, 0)[1])
    if _has_children():
        end_descendants()
    clean_up()
    return code if code >= 0 else _SIGNALLED - code


def _lead(terminal: bool) -> None:
    """A session of its own, or the front of the terminal it was given."""
    if not terminal:
        os.setsid()
        return
    os.setpgid(0, 0)
    kernel.take_terminal_silently()
    try:
        os.tcsetpgrp(0, os.getpid())
    except OSError:
        pass


def _has_children() -> bool:
    try:
        os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return False
    return True


def _kill(pid: int) -> None:
    try:
        os.kill(pid, kernel.SIGKILL)
    except ProcessLookupError:
        pass


def _parent(pid: str) -> int:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[1])
    except (OSError, ValueError):
        return 0

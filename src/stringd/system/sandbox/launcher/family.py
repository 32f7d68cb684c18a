"""Three processes: one the caller knows, one that keeps watch, and the command.

The keeper adopts whatever the command leaves behind, and ends all of it when the command has ended
or when the process the caller knows is gone, however it went. If it is to keep jobs, it ends only
what of the command's group would still print, says on its standard input that the command has
ended, and ends the rest when nobody listens there any more. A signal that ended the command is said
there, too.
"""

import os
import select

from . import kernel

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

_SIGNALLED = 128
# As long as a command without walls has; the kernel is asked for jobs once a second after that.
_TURN_MILLISECONDS, _LINGER_TURNS, _LOOK_MILLISECONDS = 50, 10, 1000


def run(
    command: "Callable[[], NoReturn]",
    clean_up: "Callable[[], None]",
    terminal: bool,
    jobs: bool = False,
) -> int:
    """Run `command` in a process of its own; its exit code, or 128 and the number of its signal."""
    kernel.be_unreadable()
    kernel.die_with_parent()
    kernel.ignore_keyboard()
    kernel.adopt_orphans()
    alive, held = os.pipe()
    keeper = os.fork()
    if keeper == 0:
        os.close(held)
        os._exit(_keep(alive, command, clean_up, terminal, jobs))
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
    alive: int,
    command: "Callable[[], NoReturn]",
    clean_up: "Callable[[], None]",
    terminal: bool,
    jobs: bool,
) -> int:
    # Out of the group of the process the caller knows: a signal to that group must not end both.
    if terminal:
        os.setpgid(0, 0)
    else:
        os.setsid()
    # Before the command begins: it may have ended by the time the fork returns here.
    kernel.adopt_orphans()
    started = os.fork()
    if started == 0:
        _lead(terminal)
        if jobs:
            os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
        command()
    poll = select.poll()
    poll.register(alive, select.POLLIN)
    poll.register(os.pidfd_open(started), select.POLLIN)
    poll.poll()
    # If it has ended, it keeps its status: killing a zombie changes nothing.
    _kill(started)
    code = os.waitstatus_to_exitcode(os.waitpid(started, 0)[1])
    signal, code = (0, code) if code >= 0 else (-code, _SIGNALLED - code)
    if jobs:
        if signal:
            _say(b"signal %d\n" % signal)
        _keep_jobs(alive, started, code)
    if _has_children():
        end_descendants()
    clean_up()
    return code


def _keep_jobs(alive: int, group: int, code: int) -> None:
    """Return when no job is left, or when all of them are to end."""
    poll = select.poll()
    poll.register(alive, select.POLLIN)
    poll.register(0, select.POLLIN)
    for turn in range(_LINGER_TURNS + 1):
        talkers = _talkers(group) if _has_group(group) else []
        if not talkers:
            break
        if turn == _LINGER_TURNS:
            for pid in talkers:
                _kill(pid)
        if poll.poll(_TURN_MILLISECONDS):
            return
    if not _has_children() or not _say(b"%d\n" % code):
        return
    while _has_children():
        if poll.poll(_LOOK_MILLISECONDS):
            return


def _say(text: bytes) -> bool:
    try:
        os.write(0, text)
    except OSError:
        return False
    return True


def _talkers(group: int) -> "list[int]":
    """The processes of a group that hold a stream of the caller's; the others have their own."""
    ours = {os.readlink(f"/proc/self/fd/{number}") for number in (1, 2)}
    return [
        pid
        for pid in descendants(os.getpid())
        if _group(pid) == group and not ours.isdisjoint(_files(pid))
    ]


def _group(pid: int) -> int:
    try:
        return os.getpgid(pid)
    except OSError:
        return 0


def _files(pid: int) -> "list[str]":
    try:
        return [os.readlink(f"/proc/{pid}/fd/{name}") for name in os.listdir(f"/proc/{pid}/fd")]
    except OSError:
        # It has ended or changed meanwhile; the next look finds out.
        return []


def _has_group(group: int) -> bool:
    _has_children()
    try:
        os.killpg(group, 0)
    except OSError:
        return False
    return True


def _lead(terminal: bool) -> None:
    """A session of its own, or the front of the terminal it was given."""
    if not terminal:
        os.setsid()
        return
    os.setpgid(0, 0)
    kernel.take_terminal_silently()
    try:
        # Its standard input may be something else.
        held = os.open("/dev/tty", os.O_RDWR | os.O_CLOEXEC)
        os.tcsetpgrp(held, os.getpid())
        os.close(held)
    except OSError:
        pass


def _has_children() -> bool:
    """Whether any is left, once those that have ended are collected."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0] != 0:
            pass
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

"""Starting a child process and learning of its end.

The child leads a session of its own and adopts its orphans: however often a descendant forks or
calls setsid, it stays below the child while that lives, and comes to us when it is gone.
"""

import asyncio
import fcntl
import os
import resource
import signal
import termios
from collections.abc import Mapping, Sequence
from typing import Final, NoReturn

from stringd.system.processes.orphans import adopt_orphans, claim, disclaim

_COULD_NOT_START: Final = 127
_RESET_SIGNALS: Final = (
    *(signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT, signal.SIGQUIT, signal.SIGHUP),
    *(signal.SIGTERM, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU),
)


class ChildProcess:
    """A started process. `exited` resolves to its status: 128 + n when signal n ended it."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.signal: signal.Signals | None = None
        self._loop = asyncio.get_running_loop()
        self.exited: asyncio.Future[int] = self._loop.create_future()
        self._handle = os.pidfd_open(pid)
        claim(pid)
        self._loop.add_reader(self._handle, self._reap)

    @property
    def lives(self) -> bool:
        """What the kernel says; `exited` follows a loop turn later."""
        if self.exited.done():
            return False
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None

    def send_signal(self, number: signal.Signals) -> None:
        """Safe at any time: the id stays ours until the end was collected."""
        if not self.exited.done():
            os.kill(self.pid, number)

    def _reap(self) -> None:
        self._loop.remove_reader(self._handle)
        os.close(self._handle)
        _, status = os.waitpid(self.pid, 0)
        disclaim(self.pid)
        code = os.waitstatus_to_exitcode(status)
        if code < 0:
            self.signal = signal.Signals(-code) if -code in set(signal.Signals) else None
            code = 128 - code
        if not self.exited.done():
            self.exited.set_result(code)


def start_child(
    argv: Sequence[str],
    *,
    environment: Mapping[str, str],
    cwd: str | int,
    files: tuple[int, int, int],
    terminal: int | None = None,
    largest_file: int | None = None,
) -> ChildProcess:
    """Run `argv` with `files` as 0, 1 and 2; `terminal` becomes its controlling terminal.

    `cwd` is a path or the descriptor of an open directory. Whatever writes a larger file than the
    `largest_file`, in bytes, is ended by SIGXFSZ. Raises `OSError`.
    """
    # First here: orphans of a child that is gone come to us.
    adopt_orphans()
    pid = os.fork()
    if pid == 0:
        try:
            adopt_orphans()
            if largest_file is not None:
                resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file, largest_file))
            _become(argv, environment, cwd, files, terminal)
        finally:
            os._exit(_COULD_NOT_START)
    return _watched(pid)


def spawn_child(
    argv: Sequence[str],
    *,
    environment: Mapping[str, str],
    cwd: str | int,
    files: tuple[int, int, int],
) -> ChildProcess:
    """Like `start_child`, without copying our memory; the child adopts no orphans.

    Raises `OSError`, or `ValueError` for text no program can take.
    """
    import subprocess

    process = subprocess.Popen(
        list(argv),
        stdin=files[0],
        stdout=files[1],
        stderr=files[2],
        cwd=f"/proc/self/fd/{cwd}" if isinstance(cwd, int) else cwd,
        env=_with_directory(environment, cwd),
        start_new_session=True,
    )
    # Its end is ours to collect.
    process.returncode = 0
    return _watched(process.pid)


def _watched(pid: int) -> ChildProcess:
    try:
        return ChildProcess(pid)
    except OSError:
        # Too many open files: nobody would ever learn of its end.
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        raise


def _with_directory(environment: Mapping[str, str], cwd: str | int) -> dict[str, str]:
    # A shell keeps the name it was sent to, which may lead over links.
    return dict(environment) if isinstance(cwd, int) else {**environment, "PWD": cwd}


def _become(
    argv: Sequence[str],
    environment: Mapping[str, str],
    cwd: str | int,
    files: tuple[int, int, int],
    terminal: int | None,
) -> NoReturn:
    os.setsid()
    if terminal is not None:
        fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
    # Python ignores some signals, whoever started us perhaps others; what is ignored here would
    # stay ignored in every program.
    for number in _RESET_SIGNALS:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    os.chdir(cwd)
    for target, source in enumerate(files):
        os.dup2(source, target)
    os.execve(argv[0], list(argv), _with_directory(environment, cwd))  # noqa: S606

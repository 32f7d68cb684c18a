"""What the kernel knows about a shell's processes, read from /proc.

A process is named by its id and its start time, so a signal never reaches a stranger that was
given the same id later.
"""

import os
import signal
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from stringd.system.environment import MARK

_GONE: Final = (FileNotFoundError, ProcessLookupError, PermissionError, NotADirectoryError)
_KERNEL_LISTS_CHILDREN: Final = Path("/proc/thread-self/children").exists()
_LOOKS: Final = 20
_TERMINAL_READ: Final = frozenset({"n_tty_read", "wait_woken"})
_READY_WAIT: Final = ("poll_schedule_timeout", "do_select", "do_poll", "ep_poll", "do_sys_poll")


class ProcessEntry(NamedTuple):
    pid: int
    parent: int
    group: int
    session: int
    state: str
    started: int

    @property
    def alive(self) -> bool:
        return self.state not in "ZX"


def find(pid: int) -> ProcessEntry | None:
    """The process with this id, or None."""
    text = _read(f"/proc/{pid}/stat")
    # The program's name may hold spaces and parentheses; fields are counted after its last ")".
    fields = text.rpartition(")")[2].split()
    if len(fields) < 20:
        return None
    return ProcessEntry(
        pid, int(fields[1]), int(fields[2]), int(fields[3]), fields[0], int(fields[19])
    )


def descendants(pid: int) -> list[ProcessEntry]:
    """Every living process below `pid`, parents first."""
    found: list[ProcessEntry] = []
    pending = children(pid)
    while pending:
        process = find(pending.pop())
        if process is not None:
            pending += children(process.pid)
            if process.alive:
                found.append(process)
    return found


def children(pid: int) -> list[int]:
    """The ids of the processes whose parent is `pid`, ended ones included."""
    if not _KERNEL_LISTS_CHILDREN:
        return [process.pid for process in everyone() if process.parent == pid]
    found: list[int] = []
    with suppress(*_GONE):
        for thread in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208
            found += map(int, _read(f"/proc/{pid}/task/{thread}/children").split())
    return found


def is_first_of_namespace(pid: int) -> bool:
    """Whether the process is number 1 of a process namespace inside ours."""
    lines = _read(f"/proc/{pid}/status").splitlines()
    numbers = next((line.split()[1:] for line in lines if line.startswith("NSpid:")), [])
    return len(numbers) > 1 and numbers[-1] == "1"


def everyone() -> Iterator[ProcessEntry]:
    for name in os.listdir("/proc"):  # noqa: PTH208
        if name.isdigit() and (process := find(int(name))) is not None:
            yield process


def carries_mark(pid: int, mark: str) -> bool:
    """Whether the process was started, directly or not, by the shell with this mark."""
    for _ in range(_LOOKS):
        with suppress(*_GONE), open(f"/proc/{pid}/environ", "rb") as file:
            environment = file.read()
            if environment:
                return f"{MARK}={mark}".encode() in environment.split(b"\0")
        # While it becomes another program it has none for a moment.
        os.sched_yield()
    return False


def holds(pid: int, files: Collection[str]) -> bool:
    """Whether the process has one of these files open, named as in `/proc/<pid>/fd`."""
    directory = f"/proc/{pid}/fd"
    with suppress(*_GONE):
        for name in os.listdir(directory):  # noqa: PTH208
            # One that was closed meanwhile hides no other.
            with suppress(*_GONE):
                if os.readlink(f"{directory}/{name}") in files:  # noqa: PTH115
                    return True
    return False


def send_signal(process: ProcessEntry, number: signal.Signals) -> None:
    """Signal exactly this process; nothing happens when it is gone."""
    with suppress(ProcessLookupError, PermissionError):
        handle = os.pidfd_open(process.pid)
        try:
            now = find(process.pid)
            if now is not None and now.started == process.started:
                signal.pidfd_send_signal(handle, number)
        finally:
            os.close(handle)


def waits_for_input(process: ProcessEntry, terminal: str, *, raw: bool) -> bool:
    """Whether the process sleeps until something is typed.

    Either it is blocked reading the terminal, or it switched the terminal to single keys (`raw`)
    and sleeps until one of its files is ready, as line editors and full-screen programs do.
    """
    if process.state != "S":
        return False
    where = _read(f"/proc/{process.pid}/wchan")
    if where in _TERMINAL_READ:
        return _file_being_read(process.pid) in (terminal, "/dev/tty")
    return raw and where.startswith(_READY_WAIT)


def working_directory(pid: int) -> str | None:
    with suppress(*_GONE):
        # Asked after every command: a Path would double the cost.
        return os.readlink(f"/proc/{pid}/cwd").removesuffix(" (deleted)")  # noqa: PTH115
    return None


def program(pid: int) -> str:
    return _read(f"/proc/{pid}/comm").strip()


def _file_being_read(pid: int) -> str:
    """The file of the read() a process is blocked in; its standard input when that is hidden."""
    call = _read(f"/proc/{pid}/syscall").split()
    number = int(call[1], 16) if len(call) > 1 else 0
    with suppress(*_GONE):
        return str(Path(f"/proc/{pid}/fd/{number}").readlink())
    return ""


def _read(path: str) -> str:
    with suppress(*_GONE), open(path, "rb", buffering=0) as file:
        return file.read().decode(errors="replace")
    return ""

"""What a test leaves behind: processes it started and sockets it opened.

A program or a socket that outlives its test makes a later test fail, where nobody looks for the
cause. So each test is asked when it ends, and the one that left something fails by name.
"""

import gc
import os
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from typing import Final, NamedTuple, Self

from tests.support.daemon import WAIT_SECONDS, reservations

OWNER: Final = "TEST_OWNER"
"""The variable by which a program is known that has lost its parent: programs inherit it."""

IGNORED: Final = "TEST_LEFTOVERS_IGNORED"
"""Set where a test is to fail half way, and what it leaves is not what it is to find."""

_numbers = count(1)


class Process(NamedTuple):
    """A line of the kernel's table of processes."""

    pid: int
    parent: int
    state: str
    name: str

    @classmethod
    def read(cls, pid: int) -> Self | None:
        try:
            with open(f"/proc/{pid}/stat", "rb") as file:
                line = file.read().decode("utf-8", "replace")
        except OSError:
            return None
        name, _, rest = line.partition("(")[2].rpartition(")")
        state, parent = rest.split()[:2]
        return cls(pid, int(parent), state, name)

    def __str__(self) -> str:
        try:
            with open(f"/proc/{self.pid}/cmdline", "rb") as file:
                line = file.read().replace(b"\0", b" ").decode("utf-8", "replace").strip()
        except OSError:
            line = ""
        return f"process {self.pid}: {line[:200] or self.name}"


class Snapshot:
    """What existed when a test began; what exists beyond it when the test ends is the test's."""

    def __init__(self) -> None:
        self.owner = f"{os.getpid()}-{next(_numbers)}"
        os.environ[OWNER] = self.owner
        self._sockets = _sockets()
        self._newest = _newest_process()
        self._pids = _pids()

    def leftovers(self) -> list[str]:
        """Names of everything left over. Processes are ended, after a wait for those that end."""
        # Garbage in cycles still holds its sockets, and its warning belongs to this test.
        gc.collect()
        # What is alive now outlives the test: later collections need not look at it.
        gc.freeze()
        processes = self._processes()
        deadline = time.monotonic() + WAIT_SECONDS
        while processes and time.monotonic() < deadline:
            time.sleep(0.005)
            processes = self._processes()
        left = [str(process) for process in processes]
        for process in processes:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(process.pid, signal.SIGKILL)
        return left + [f"descriptor {number}: {name}" for number, name in self._new_sockets()]

    def _new_sockets(self) -> list[tuple[int, str]]:
        known = set(self._sockets.values())
        now = _sockets()
        new = [(number, name) for number, name in now.items() if name not in known]
        if not new:
            return []
        # What a server of a wider fixture accepted is that server's.
        lasting = {_address(number) for number, name in now.items() if name in known} - {None}
        return [(number, name) for number, name in new if _address(number) not in lasting]

    def _processes(self) -> list[Process]:
        # The kernel counts upwards: the same number means that nobody started anything.
        if _newest_process() == self._newest:
            return []
        return [process for process in _running(_pids() - self._pids) if self._owns(process)]

    def _owns(self, process: Process) -> bool:
        return self._descends(process) or _owner(process.pid) == self.owner

    def _descends(self, process: Process) -> bool:
        """Whether it was started by us, or by a program that this test started."""
        parent: Process | None = process
        while parent is not None and parent.pid not in self._pids:
            if parent.parent == os.getpid():
                return True
            parent = Process.read(parent.parent)
        return False


def _running(pids: set[int]) -> Iterator[Process]:
    for pid in pids:
        process = Process.read(pid)
        if process is None:
            continue
        if process.state != "Z":
            yield process
        elif process.parent == os.getpid():
            # An orphan of a program that ended: the product makes us the parent of those.
            with suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)


def _pids() -> set[int]:
    return {int(name) for name in os.listdir("/proc") if name.isdecimal()}


def _newest_process() -> str:
    with open("/proc/loadavg", encoding="ascii") as file:
        return file.read().split()[-1]


def _owner(pid: int) -> str | None:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            entries = file.read().split(b"\0")
    except OSError:
        return None
    prefix = f"{OWNER}=".encode()
    return next((e.removeprefix(prefix).decode() for e in entries if e.startswith(prefix)), None)


def _sockets() -> dict[int, str]:
    """Our open sockets by descriptor, but for those that keep a port for us."""
    found: dict[int, str] = {}
    for name in os.listdir("/proc/self/fd"):
        with suppress(OSError):
            target = os.readlink(f"/proc/self/fd/{name}")
            if target.startswith("socket:"):
                found[int(name)] = target
    for each in reservations:
        found.pop(each.fileno(), None)
    return found


def _address(number: int) -> object:
    """Where a TCP socket is on our side: the listener and what it accepted have the same."""
    with socket.socket(fileno=os.dup(number)) as same:
        inet = same.family in (socket.AF_INET, socket.AF_INET6)
        return same.getsockname() if inet and same.type == socket.SOCK_STREAM else None

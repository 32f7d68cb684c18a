"""What a command leaves running: in its sandbox, which says so, or in the open."""

import asyncio
import os
import signal
import socket
from contextlib import suppress
from typing import Protocol

from stringd.system.processes.child import ChildProcess
from stringd.system.processes.orphans import orphans_of
from stringd.system.processes.table import send_signal
from stringd.system.processes.tree import end_orphans, gone

_LONGEST_REPORT = 64


class DetachedJob(Protocol):
    """What lives on after its command has ended."""

    @property
    def pid(self) -> int:
        """The process to kill, in a sandbox with everything inside."""

    @property
    def ended(self) -> asyncio.Future[int]:
        """Done when nothing of it is left."""

    def kill(self) -> None:
        """End all of it at once."""

    async def end(self) -> None:
        """End all of it and wait until it is gone."""


class JobReport:
    """The socket on which a sandbox that keeps jobs says how the command ended.

    `status` is done when it has said so: the command has ended, and something lives on inside.
    `signal` is the one that ended the command, known once the command has ended.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.status: asyncio.Future[int] = self._loop.create_future()
        self.signal: signal.Signals | None = None
        self._said = b""
        self._ours, self._theirs = socket.socketpair()
        self._ours.setblocking(False)

    @property
    def theirs(self) -> int:
        """The standard input of the sandbox, until `listen`."""
        return self._theirs.fileno()

    def listen(self) -> None:
        self._theirs.close()
        self._loop.add_reader(self._ours, self._readable)

    def close(self) -> None:
        """Whatever is still inside ends."""
        if self._ours.fileno() >= 0:
            # The last word may have arrived with the end.
            self._readable()
            self._loop.remove_reader(self._ours)
        self._ours.close()
        self._theirs.close()

    def _readable(self) -> None:
        try:
            data = self._ours.recv(_LONGEST_REPORT)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._loop.remove_reader(self._ours)
            return
        *lines, self._said = (self._said + data)[-_LONGEST_REPORT:].split(b"\n")
        for line in lines:
            kind, _, number = line.rpartition(b" ")
            if not number.isdigit():
                continue
            if kind == b"signal" and int(number) in set(signal.Signals):
                self.signal = signal.Signals(int(number))
            elif not kind and not self.status.done():
                self.status.set_result(int(number))


class SandboxJob:
    """A sandbox whose command has ended and in which something lives on."""

    def __init__(self, child: ChildProcess, report: JobReport) -> None:
        self._child = child
        self._report = report

    @property
    def pid(self) -> int:
        return self._child.pid

    @property
    def ended(self) -> asyncio.Future[int]:
        return self._child.exited

    def kill(self) -> None:
        self._report.close()
        if not self._child.exited.done():
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)

    async def end(self) -> None:
        self.kill()
        await asyncio.wait({self._child.exited})


class OpenJob:
    """The processes that a command without walls left, known by its session and its mark."""

    def __init__(self, session: int, mark: str, pid: int) -> None:
        self.pid = pid
        self._session = session
        self._mark = mark
        loop = asyncio.get_running_loop()
        self.ended: asyncio.Future[int] = loop.create_future()
        self._watching = loop.create_task(self._watch())

    @classmethod
    def of(cls, session: int, mark: str) -> "OpenJob | None":
        """What is left, if anything is."""
        left = orphans_of(session, mark)
        return cls(session, mark, left[0].pid) if left else None

    def kill(self) -> None:
        for process in orphans_of(self._session, self._mark):
            send_signal(process, signal.SIGKILL)

    async def end(self) -> None:
        await end_orphans(self._session, self._mark)
        await asyncio.wait({self.ended})

    async def _watch(self) -> None:
        # What one of them started meanwhile belongs to the job too.
        while left := orphans_of(self._session, self._mark):
            await gone(left, None)
        self.ended.set_result(0)

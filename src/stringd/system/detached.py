"""What a command in a sandbox leaves running, and how the sandbox says so."""

import asyncio
import os
import signal
import socket
from contextlib import suppress

from stringd.system.processes.child import ChildProcess

_LONGEST_REPORT = 16


class JobReport:
    """The socket on which a sandbox that keeps jobs says how the command ended.

    `status` is done when it has said so: the command has ended, and something lives on inside.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.status: asyncio.Future[int] = self._loop.create_future()
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
        self._loop.remove_reader(self._ours)
        said = data.strip()
        if said.isdigit() and not self.status.done():
            self.status.set_result(int(said))


class DetachedJob:
    """A sandbox whose command has ended and in which something lives on."""

    def __init__(self, child: ChildProcess, report: JobReport) -> None:
        self._child = child
        self._report = report

    @property
    def pid(self) -> int:
        """The process that is the sandbox; killing it ends everything inside."""
        return self._child.pid

    @property
    def ended(self) -> asyncio.Future[int]:
        return self._child.exited

    def kill(self) -> None:
        """End everything inside at once."""
        self._report.close()
        if not self._child.exited.done():
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)

    async def end(self) -> None:
        self.kill()
        await asyncio.wait({self._child.exited})

"""Files that only grow, each line in one write, and not too many of them open at once.

A line torn by a crash or a full disk is ended before the next one.
"""

import asyncio
import errno
import fcntl
import logging
import os
import resource
from collections import OrderedDict, deque
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Final

from stringd.system.files import make_private_directory

# Syncs of different files overlap in the kernel; more threads than this only queue there.
_THREADS: Final = 4

# Whoever waited may have much to do then; more at once would keep everybody else waiting.
_WOKEN_TOGETHER: Final = 4

_Job = tuple[int, "asyncio.Future[None]"]
_Outcome = tuple["asyncio.Future[None]", OSError | None]


class Syncer:
    """Used from one event loop; its threads start with the first sync.

    Those whose syncs end together go on a few in each turn of the loop.
    """

    def __init__(self) -> None:
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._ended: deque[_Outcome] = deque()
        self._waking = False
        self._threads: list[Thread] = []

    async def sync(self, fd: int) -> None:
        """Return once everything written to `fd` so far is on the disk. Raises `OSError`."""
        if not self._threads:
            self._start()
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._jobs.put((fd, done))
        await done

    def close(self) -> None:
        """Finish what was asked for and end the threads."""
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            thread.join()

    def _start(self) -> None:
        for number in range(_THREADS):
            thread = Thread(target=self._work, name=f"stringd-sync-{number}", daemon=True)
            thread.start()
            self._threads.append(thread)

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            fd, done = job
            failure: OSError | None = None
            try:
                os.fdatasync(fd)
            except OSError as error:
                failure = error
            self._ended.append((done, failure))
            loop = done.get_loop()
            # A loop that has been woken and has not looked yet will find this one too.
            if not self._waking and not loop.is_closed():
                self._waking = True
                loop.call_soon_threadsafe(self._wake_some, loop)

    def _wake_some(self, loop: asyncio.AbstractEventLoop) -> None:
        # Before looking: what ends from here on wakes the loop again, perhaps for nothing.
        self._waking = False
        for _ in range(_WOKEN_TOGETHER):
            if not self._ended:
                return
            _settle(*self._ended.popleft())
        if self._ended and not self._waking:
            self._waking = True
            loop.call_soon(self._wake_some, loop)


def _settle(done: "asyncio.Future[None]", failure: OSError | None) -> None:
    if done.cancelled():
        return
    if failure is None:
        done.set_result(None)
    else:
        done.set_exception(failure)


log = logging.getLogger(__name__)

# Each running run uses two files; sockets and children need the rest of what we may open.
MAX_OPEN: Final = max(64, min(4096, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 4))


class AppendFiles:
    """Open files by path. Use it from one thread."""

    def __init__(self, max_open: int = MAX_OPEN) -> None:
        self._max_open = max_open
        self._open: OrderedDict[str, int] = OrderedDict()
        self._claimed: set[str] = set()
        self._syncing: dict[int, int] = {}
        self._syncer = Syncer()

    def write(self, path: str, line: bytes) -> None:
        """Append a line that ends with a newline, whole or not at all. Raises `OSError`."""
        fd = self._file(path)
        try:
            written = os.write(fd, line)
            if written < len(line):
                os.ftruncate(fd, os.lseek(fd, 0, os.SEEK_CUR) - written)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError:
            # Opened again, a line that could not be taken back is ended before the next one.
            self._close(path)
            raise

    async def sync(self, path: str) -> None:
        """Return once everything written to the file so far is on the disk. Raises `OSError`."""
        fd = self._open.get(path)
        if fd is None:
            return
        self._syncing[fd] = self._syncing.get(fd, 0) + 1
        try:
            await self._syncer.sync(fd)
        finally:
            self._syncing[fd] -= 1
            if not self._syncing[fd]:
                del self._syncing[fd]

    def claim(self, path: str) -> bool:
        """Hold the file until it is released; False while another process does.

        Raises `OSError` when there is no such file and none can be made.
        """
        fd = self._file(path)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._close(path)
            return False
        except OSError as error:
            # A disk that knows no locks has one daemon, we hope, rather than none.
            log.warning("cannot claim %s: %s", path, error)
        self._claimed.add(path)
        return True

    def claimed(self, path: str) -> bool:
        """Whether we hold the file."""
        return path in self._claimed

    def release(self, path: str) -> None:
        """Close the file and give up what was claimed."""
        self._claimed.discard(path)
        self._close(path)

    def close(self) -> None:
        self._syncer.close()
        while self._open:
            os.close(self._open.popitem()[1])

    def _close(self, path: str) -> None:
        fd = self._open.pop(path, None)
        if fd is not None:
            os.close(fd)

    def _file(self, path: str) -> int:
        fd = self._open.get(path)
        if fd is not None:
            self._open.move_to_end(path)
            return fd
        self._make_room()
        fd = _open_for_append(path)
        self._open[path] = fd
        if path in self._claimed:
            with suppress(OSError):
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return fd

    def _make_room(self) -> None:
        """Close the file unused for longest; those being synced stay, even past the limit.

        One that holds a claim goes only when there is no other.
        """
        if len(self._open) < self._max_open:
            return
        free = next((path for path in self._idle() if path not in self._claimed), None)
        chosen = free or next(self._idle(), None)
        if chosen is not None:
            self._close(chosen)

    def _idle(self) -> Iterator[str]:
        return (path for path, fd in self._open.items() if fd not in self._syncing)


def _open_for_append(path: str) -> int:
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
    try:
        fd = os.open(path, flags, 0o600)
    except FileNotFoundError:
        make_private_directory(Path(path).parent)
        fd = os.open(path, flags, 0o600)
    size = os.fstat(fd).st_size
    if size and os.pread(fd, 1, size - 1) != b"\n":
        os.write(fd, b"\n")
    return fd

"""Waits for the disk without keeping the loop waiting.

`fdatasync` takes a fraction of a millisecond and more; done in the loop it would stall every run.
A few threads do it and hand each result back to the loop.
"""

import asyncio
import os
from queue import SimpleQueue
from threading import Thread
from typing import Final

# Syncs of different files overlap in the kernel; more threads than this only queue there.
_THREADS: Final = 4

_Job = tuple[int, "asyncio.Future[None]"]


class Syncer:
    """Used from one event loop; its threads start with the first sync."""

    def __init__(self) -> None:
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
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
            loop = done.get_loop()
            if not loop.is_closed():
                loop.call_soon_threadsafe(_settle, done, failure)


def _settle(done: "asyncio.Future[None]", failure: OSError | None) -> None:
    if done.cancelled():
        return
    if failure is None:
        done.set_result(None)
    else:
        done.set_exception(failure)

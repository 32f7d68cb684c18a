"""Waits for the disk without keeping the loop waiting.

`fdatasync` takes a fraction of a millisecond and more; done in the loop it would stall every run.
A few threads do it; whoever asked meanwhile shares the next one.
"""

import asyncio
import os
from concurrent.futures import ThreadPoolExecutor
from typing import Final

# Syncs of different files overlap in the kernel; more threads than this only queue there.
_THREADS: Final = 4


class Syncer:
    """Must be used from one event loop."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="stringd-sync")

    async def sync(self, fd: int) -> None:
        """Return once everything written to `fd` so far is on the disk. Raises `OSError`."""
        await asyncio.get_running_loop().run_in_executor(self._threads, os.fdatasync, fd)

    def close(self) -> None:
        self._threads.shutdown(wait=True)

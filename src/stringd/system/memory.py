"""Memory for large answers: kept where it is used again, in large pages."""

import gc
import mmap
import time
from contextlib import suppress
from typing import Final

# Parameters of glibc's allocator, by the numbers it gave them.
_TRIM_THRESHOLD: Final = -1
_MMAP_THRESHOLD: Final = -3
_KEPT_BYTES: Final = 1024 * 1024

GROWN: Final = 1.15
"""Memory is given back when there is so many times of what there was."""
HELPED: Final = 0.95
"""Giving back was worth it when no more than this is left."""
LONGEST_PAUSE: Final = 64
"""Looks between two attempts that did not help."""
LIGHT_LOAD: Final = 512 * 1024
"""With less in use, there is little to look through."""
LONGEST_COLLECTION: Final = 0.01
"""Seconds the collector may take while much is in use."""


def keep_freed_memory() -> None:
    """Let the allocator keep a megabyte instead of giving every large answer's back.

    Asking the kernel for fresh pages costs a 100 KB document a third of its time. Only glibc
    can be told; elsewhere this does nothing.
    """
    import ctypes

    tune = getattr(ctypes.CDLL(None), "mallopt", None)
    if tune is not None:
        tune(_MMAP_THRESHOLD, _KEPT_BYTES)
        tune(_TRIM_THRESHOLD, _KEPT_BYTES)


def resident_bytes() -> int | None:
    """What this process has in memory now; None where the system does not say."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * mmap.PAGESIZE
    except OSError:
        return None


def collection() -> float:
    """Let the collector look through everything; the seconds it took."""
    started = time.perf_counter()
    gc.collect()
    return time.perf_counter() - started


def trim() -> None:
    """Return to the system what nobody uses; only glibc can. Others run meanwhile."""
    import ctypes

    give_back = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if give_back is not None:
        give_back(0)


class MemoryKeeper:
    """Gives memory back after a flood. Call `look` every few seconds.

    While giving back does not help, because the memory is in use, it is tried less and less often.
    An ended run is a cycle of few objects with large texts: the collector would not look for it by
    itself while a daemon is idle, so it is made to. Nothing else runs while it looks through what
    thousands of connections use; where that took long, it waits until they are gone.
    """

    def __init__(self) -> None:
        self._lowest: int | None = None
        self._load = 0
        self._pause = 1
        self._waited = 0
        self._collecting = 0.0

    async def look(self, load: int) -> None:
        """Give memory back if there is more than there was. `load` says how much is in use now."""
        now = resident_bytes()
        if now is None:
            return
        if self._lowest is None or now < self._lowest:
            self._lowest = now
        if load < self._load // 2:
            self._pause = 1
        self._waited += 1
        if now < self._lowest * GROWN or self._waited < self._pause:
            return
        self._waited = 0
        self._load = load
        if load <= LIGHT_LOAD or self._collecting <= LONGEST_COLLECTION:
            self._collecting = collection()
        import asyncio  # whoever awaits this has it; the gate starts faster without

        await asyncio.to_thread(trim)
        helped = (resident_bytes() or now) < now * HELPED
        self._pause = 1 if helped else min(self._pause * 2, LONGEST_PAUSE)


def large_room(size: int) -> memoryview:
    """Zeroed memory in pages as large as the system gives; it is given back when unused.

    Touching sixteen megabytes in small pages takes longer than filling them.
    """
    pages = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    # Linux with large pages has it; elsewhere small ones do.
    with suppress(AttributeError, OSError):
        pages.madvise(mmap.MADV_HUGEPAGE)
    return memoryview(pages)

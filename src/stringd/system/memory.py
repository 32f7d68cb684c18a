"""Memory for large answers: kept where it is used again, in large pages."""

import mmap
from contextlib import suppress
from typing import Final

# Parameters of glibc's allocator, by the numbers it gave them.
_TRIM_THRESHOLD: Final = -1
_MMAP_THRESHOLD: Final = -3
_KEPT_BYTES: Final = 1024 * 1024


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


def large_room(size: int) -> memoryview:
    """Zeroed memory in pages as large as the system gives; it is given back when unused.

    Touching sixteen megabytes in small pages takes longer than filling them.
    """
    pages = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    # Linux with large pages has it; elsewhere small ones do.
    with suppress(AttributeError, OSError):
        pages.madvise(mmap.MADV_HUGEPAGE)
    return memoryview(pages)

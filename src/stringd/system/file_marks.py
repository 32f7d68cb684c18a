"""How a file looks from outside: while that stays the same, so does its content."""

import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final

FileMark = tuple[int, int, int, int, int] | None
"""Device, inode, size and both times of change; None where nothing is."""
_UNSURE_NS: Final = 50_000_000


def mark(path: Path | str) -> FileMark:
    """What a path leads to, links followed. Take it before reading: a change then shows."""
    try:
        found = os.stat(path)  # noqa: PTH116 - asked with every run
    except (OSError, ValueError):
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def settled(marks: Iterable[FileMark]) -> bool:
    """Whether the next change will show; one right after another may leave the same times."""
    now = time.time_ns()
    return all(each is None or now - max(each[3:]) > _UNSURE_NS for each in marks)

"""Whether a path is inside a repository's work tree: what came with a clone."""

import os
from pathlib import Path
from typing import Final

_MARKS: Final = (".git", ".hg", ".svn", ".jj", ".bzr")


def repository_of(path: Path) -> Path | None:
    """The root of the innermost repository a path is in, links followed; None outside of one."""
    folder = os.path.realpath(path)
    while not _has_mark(folder):
        inner, folder = folder, os.path.dirname(folder)  # noqa: PTH120 - asked for every strategy
        if folder == inner:
            return None
    return Path(folder)


def _has_mark(folder: str) -> bool:
    return any(os.path.exists(f"{folder}/{mark}") for mark in _MARKS)  # noqa: PTH110

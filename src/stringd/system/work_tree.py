"""Whether a path is inside a repository's work tree: what came with a clone."""

import os
from pathlib import Path, PurePath
from typing import Final

MARKS: Final = (".git", ".hg", ".svn", ".jj", ".bzr")
_PARTS: Final = ("HEAD", "objects", "refs")


def repository_of(path: Path) -> Path | None:
    """The root of the innermost repository a path is in, links followed; None outside of one."""
    folder = os.path.realpath(path)
    while not _has_mark(folder):
        inner, folder = folder, os.path.dirname(folder)  # noqa: PTH120 - asked for every strategy
        if folder == inner:
            return None
    return Path(folder)


def _has_mark(folder: str) -> bool:
    return any(os.path.exists(f"{folder}/{mark}") for mark in MARKS)  # noqa: PTH110


def in_git_directory(path: PurePath) -> bool:
    """Whether a path is in what git keeps of a repository, under whatever name: a bare one, or one
    whose work tree is elsewhere.
    """
    return any(
        all(os.path.exists(each / part) for part in _PARTS)  # noqa: PTH110 - a pure path
        for each in path.parents
    )

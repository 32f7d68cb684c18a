"""Whether a path is inside a repository's work tree: what came with a clone."""

from pathlib import Path
from typing import Final

_MARKS: Final = (".git", ".hg", ".svn", ".jj", ".bzr")


def repository_of(path: Path) -> Path | None:
    """The root of the innermost repository a path is in, links followed; None outside of one."""
    real = path.resolve()
    for folder in (real, *real.parents):
        if any((folder / mark).exists() for mark in _MARKS):
            return folder
    return None

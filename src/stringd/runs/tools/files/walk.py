"""Walking the workspace: what is there, without following links out of it."""

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, Literal, NamedTuple

from stringd.runs.guard import globs
from stringd.runs.guard.errors import Denied
from stringd.runs.guard.workspace import Workspace, WorkspacePath
from stringd.runs.tools.files import disk

DEFAULT_EXCLUDES: Final = (
    "node_modules",
    ".git",
    "dist",
    "build",
    ".next",
    ".turbo",
    "coverage",
)
MAX_DEPTH: Final = 32

EntryType = Literal["file", "directory", "symlink"]


class Entry(NamedTuple):
    """`below` is the path from where the walk began; `place` its real place."""

    name: str
    below: str
    type: EntryType
    size: int
    mtime: float
    depth: int
    place: WorkspacePath


def excluded(below: str, patterns: tuple[str, ...] | None) -> bool:
    """Whether a path is left out: by the patterns given, else by the usual heavy folders."""
    if patterns is None:
        return any(part in DEFAULT_EXCLUDES for part in below.split("/"))
    return any(globs.matches(pattern, below) for pattern in patterns)


def walk(
    workspace: Workspace,
    start: WorkspacePath,
    *,
    max_depth: int,
    enter: Callable[[Entry], bool],
) -> Iterator[Entry]:
    """Everything below `start`, nearer entries first. `enter` says whether to show and descend."""
    waiting = [(start.real, "", 1)]
    while waiting:
        folder, prefix, depth = waiting.pop(0)
        for entry in sorted(_scan(workspace, folder, prefix, depth)):
            if not enter(entry):
                continue
            yield entry
            if entry.type == "directory" and depth < max_depth:
                waiting.append((entry.place.real, f"{entry.below}/", depth + 1))


def _scan(workspace: Workspace, folder: Path, prefix: str, depth: int) -> Iterator[Entry]:
    try:
        with disk.open_folder(folder) as opened, os.scandir(opened) as found:
            for each in found:
                with suppress(OSError, Denied):
                    status = each.stat(follow_symlinks=False)
                    kind = _type(status.st_mode)
                    if kind is not None:
                        place = _place(workspace, folder / each.name, kind)
                        size, mtime, below = status.st_size, status.st_mtime, prefix + each.name
                        yield Entry(each.name, below, kind, size, mtime, depth, place)
    except OSError:
        return
    except Denied:
        # What was asked for must not quietly become something else; below it, it is left out.
        if depth == 1:
            raise


def _place(workspace: Workspace, path: Path, kind: EntryType) -> WorkspacePath:
    # The folder is a real path, so only a link itself can lead elsewhere.
    if kind == "symlink":
        return workspace.place(str(path))
    return WorkspacePath(path, workspace.relative(path))


def _type(mode: int) -> EntryType | None:
    if stat.S_ISDIR(mode):
        return "directory"
    if stat.S_ISLNK(mode):
        return "symlink"
    return "file" if stat.S_ISREG(mode) else None

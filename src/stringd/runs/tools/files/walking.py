"""Walking the workspace: what is there, without following links out of it."""

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, Literal, NamedTuple

from stringd.runs import globs
from stringd.runs.guard.paths import Place, Workspace

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
    place: Place


def excluded(below: str, patterns: tuple[str, ...] | None) -> bool:
    """Whether a path is left out: by the patterns given, else by the usual heavy folders."""
    if patterns is None:
        return any(part in DEFAULT_EXCLUDES for part in below.split("/"))
    return any(globs.matches(pattern, below) for pattern in patterns)


def walk(
    workspace: Workspace,
    start: Place,
    *,
    max_depth: int,
    enter: Callable[[Entry], bool],
) -> Iterator[Entry]:
    """Everything below `start`, nearer entries first. `enter` says whether to show and descend."""
    waiting = [(start.real, "", 1)]
    while waiting:
        folder, prefix, depth = waiting.pop(0)
        for entry in sorted(_scan(workspace, os.fspath(folder), prefix, depth)):
            if not enter(entry):
                continue
            yield entry
            if entry.type == "directory" and depth < max_depth:
                waiting.append((entry.place.real, f"{entry.below}/", depth + 1))


def _scan(workspace: Workspace, folder: str, prefix: str, depth: int) -> Iterator[Entry]:
    try:
        found = list(os.scandir(folder))
    except OSError:
        return
    for each in found:
        try:
            status = each.stat(follow_symlinks=False)
        except OSError:
            continue
        kind = _type(status.st_mode)
        if kind is not None:
            # The folder is a real path, so only a link itself can lead elsewhere.
            place = _place(workspace, each, kind)
            below = prefix + each.name
            yield Entry(each.name, below, kind, status.st_size, status.st_mtime, depth, place)


def _place(workspace: Workspace, each: "os.DirEntry[str]", kind: EntryType) -> Place:
    if kind == "symlink":
        return workspace.place(each.path)
    path = Path(each.path)
    return Place(path, workspace.relative(path))


def _type(mode: int) -> EntryType | None:
    if stat.S_ISDIR(mode):
        return "directory"
    if stat.S_ISLNK(mode):
        return "symlink"
    return "file" if stat.S_ISREG(mode) else None

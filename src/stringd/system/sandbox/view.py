"""What a command sees of the disk: each place that differs from its surroundings, in order."""

import os
import stat
from collections.abc import Iterable, Iterator
from enum import IntEnum
from fnmatch import fnmatchcase
from typing import Final, NamedTuple

from stringd.system.sandbox.spec import TEMPORARY, Level, SandboxError, SandboxSpec


class MountAccess(IntEnum):
    """In order of strictness: at the same place the stricter wins."""

    OWN = 0
    """Empty at first, writable, gone afterwards."""
    WRITE = 1
    READ = 2
    HIDDEN = 3


class ViewEntry(NamedTuple):
    path: str
    access: MountAccess
    directory: bool


_ROOT: Final = ViewEntry("/", MountAccess.READ, True)


def view(spec: SandboxSpec, sockets: Iterable[str] = ()) -> tuple[ViewEntry, ...]:
    """Outer places before inner ones, links resolved, what does not exist left out.

    `sockets` are paths where somebody listens; they are hidden wherever they are. Raises
    `SandboxError` for a workspace that is not there.
    """
    places: dict[str, ViewEntry] = {}
    for path, access in _wanted(spec, sockets):
        entry = _entry(path, access)
        if entry is not None and access >= places.get(entry.path, entry).access:
            places[entry.path] = entry
    for named in spec.named:
        entry = _entry(os.fspath(named), _works(spec))
        if entry is not None and not _is_hidden(entry.path, places):
            known = places.get(entry.path, entry)
            places[entry.path] = max(known, entry, key=lambda each: each.access)
    for workspace in spec.workspace:
        if not workspace.is_dir():
            raise SandboxError(f"The workspace {workspace} is not a directory")
    kept = _without_repeats(sorted(places.values(), key=_depth))
    found = sorted((*kept, *_pinned(kept)), key=_depth)
    if os.geteuid() != 0:
        return tuple(found)
    # Inside, root has no more rights than others: what it could not get to needs no walls.
    passable: dict[str, bool] = {"/": True}
    return tuple(entry for entry in found if _can_pass(_parent(entry.path), passable))


def matching(pattern: str) -> Iterator[str]:
    """The paths a pattern in the last part of a path means."""
    parent, _, name = pattern.rpartition("/")
    if not any(sign in name for sign in "*?["):
        yield pattern
        return
    try:
        names = os.listdir(parent)  # noqa: PTH208 - names are what is matched
    except OSError:
        return
    yield from (f"{parent}/{each}" for each in names if fnmatchcase(each, name))


def _wanted(spec: SandboxSpec, sockets: Iterable[str]) -> Iterator[tuple[str, MountAccess]]:
    yield from ((path, MountAccess.OWN) for path in TEMPORARY)
    yield from ((os.fspath(path), _works(spec)) for path in spec.workspace)
    if spec.level is not Level.READ_ONLY:
        yield from ((os.fspath(path), MountAccess.WRITE) for path in spec.writable)
    yield from ((os.fspath(path), MountAccess.READ) for path in spec.readable)
    for pattern in spec.hidden:
        yield from ((path, MountAccess.HIDDEN) for path in matching(pattern))
    yield from ((path, MountAccess.HIDDEN) for path in sockets)


def _works(spec: SandboxSpec) -> MountAccess:
    return MountAccess.READ if spec.level is Level.READ_ONLY else MountAccess.WRITE


def _is_hidden(path: str, places: dict[str, ViewEntry]) -> bool:
    inside = places.get(path)
    access = _surrounding(path, places) if inside is None else inside.access
    return access is MountAccess.HIDDEN


def _entry(path: str, access: MountAccess) -> ViewEntry | None:
    """A place by its real path: whichever link leads there, it is the same place."""
    try:
        mode = os.stat(path).st_mode  # noqa: PTH116 - for hundreds of paths a command
    except (OSError, ValueError):
        return None
    return ViewEntry(os.path.realpath(path), access, stat.S_ISDIR(mode))


def _parent(path: str) -> str:
    return path.rpartition("/")[0] or "/"


def _can_pass(directory: str, known: dict[str, bool]) -> bool:
    """Whether root without its capabilities gets into a directory."""
    if directory not in known:
        try:
            info = os.stat(directory)  # noqa: PTH116
        except OSError:
            # It has vanished meanwhile, and what was in it too.
            return False
        shift = 6 if info.st_uid == 0 else 3 if info.st_gid == os.getegid() else 0
        may = bool(info.st_mode >> shift & 1)
        known[directory] = may and _can_pass(_parent(directory), known)
    return known[directory]


def _depth(entry: ViewEntry) -> int:
    return len(entry.path.rstrip("/").split("/"))


def _pinned(entries: Iterable[ViewEntry]) -> tuple[ViewEntry, ...]:
    """The directories on the way from a writable place to a stricter one inside it.

    As places of their own they cannot be renamed; otherwise a command could move what is around a
    secret, and the next command would find the secret where nothing hides it.
    """
    known = {entry.path: entry for entry in entries}
    found: dict[str, ViewEntry] = {}
    for entry in known.values():
        if entry.access in (MountAccess.READ, MountAccess.HIDDEN):
            way = list(_way_up(entry.path, known))
            if known.get(way[-1], _ROOT).access is MountAccess.WRITE:
                found.update((path, ViewEntry(path, MountAccess.WRITE, True)) for path in way[:-1])
    return tuple(found.values())


def _way_up(path: str, known: dict[str, ViewEntry]) -> Iterator[str]:
    """The directories above, up to the first known one or the root."""
    while path != "/":
        path = _parent(path)
        yield path
        if path in known:
            return


def _without_repeats(entries: list[ViewEntry]) -> tuple[ViewEntry, ...]:
    kept: dict[str, ViewEntry] = {}
    for entry in entries:
        around = _surrounding(entry.path, kept)
        absent = (
            around in (MountAccess.OWN, MountAccess.HIDDEN) and entry.access is MountAccess.HIDDEN
        )
        if not absent and entry.access is not around:
            kept[entry.path] = entry
    return tuple(kept.values())


def _surrounding(path: str, kept: dict[str, ViewEntry]) -> MountAccess:
    *_, nearest = ("/", *_way_up(path, kept))
    return kept.get(nearest, _ROOT).access

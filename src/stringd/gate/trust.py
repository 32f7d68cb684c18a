"""Who besides root can change what a path leads to. Looks at the disk; decides nothing."""

import grp
import os
import pwd
import stat
from collections.abc import Iterator
from typing import Final, NamedTuple

_MAX_LINKS: Final = 40
_OF_THE_SYSTEM: Final = ("/usr/", "/bin/", "/sbin/", "/lib", "/nix/store/", "/snap/")
_OTHERS_WRITE: Final = stat.S_IWGRP | stat.S_IWOTH


class Weakness(NamedTuple):
    """A file or directory on the way that others than root can change."""

    path: str
    who: str


def weaknesses(path: str) -> list[Weakness]:
    """Everything on the way to a file that others than root can change, the file itself last.

    Every directory and every symbolic link on the way counts: who can change one of them decides
    which file the path names. Raises `OSError` when the path leads nowhere.
    """
    return [
        Weakness(each, who)
        for each, found in _steps(path)
        if (who := _who_can_change(found)) is not None
    ]


def is_roots_alone(path: str) -> bool:
    """Whether only root can change which file a path names and what is in it."""
    try:
        return not weaknesses(path)
    except OSError:
        return False


def is_fixed(path: str) -> bool:
    """Whether nothing that asks this gate could change which file a path names.

    The caller belongs to our own account. For a gate that is root these are root's programs, and
    then only
    the directories of the system, which packages write to, count as fixed.
    """
    if os.getuid() == 0 and not path.startswith(_OF_THE_SYSTEM):
        return False
    return is_roots_alone(path)


def _steps(path: str) -> Iterator[tuple[str, os.stat_result]]:
    """Each directory and link the kernel passes on the way, and the file at the end."""
    at, waiting, links = "/", _parts(path), 0
    yield at, os.lstat(at)
    while waiting:
        part = waiting.pop()
        if part == "..":
            at = os.path.dirname(at)  # noqa: PTH120  (plain text, as the kernel walks it)
            continue
        here = os.path.join(at, part)  # noqa: PTH118  (see above)
        found = os.lstat(here)
        yield here, found
        if not stat.S_ISLNK(found.st_mode):
            at = here
            continue
        links += 1
        if links > _MAX_LINKS:
            raise OSError(40, os.strerror(40))
        target = os.readlink(here)  # noqa: PTH115  (see above)
        at = "/" if target.startswith("/") else at
        waiting += _parts(target)


def _parts(path: str) -> list[str]:
    """The names in a path, the first one last."""
    return [part for part in reversed(path.split("/")) if part not in ("", ".")]


def _who_can_change(found: os.stat_result) -> str | None:
    if found.st_uid != 0:
        return _account(found.st_uid)
    if stat.S_ISLNK(found.st_mode) or not found.st_mode & _OTHERS_WRITE:
        return None
    if stat.S_ISDIR(found.st_mode) and found.st_mode & stat.S_ISVTX:
        # Like /tmp: what root owns in it stays root's, and whose the next step is, is seen there.
        return None
    return "everyone" if found.st_mode & stat.S_IWOTH else f"group {_group(found.st_gid)}"


def _account(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid {uid}"


def _group(gid: int) -> str:
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return str(gid)

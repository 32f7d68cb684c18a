"""Removing the temporary files that a killed daemon left, and nothing else.

A file is removed when a list of a daemon that is gone names it, it has a name of the kind only we
make up, and it is the very file that was meant. Links are not followed on the way to it.
"""

import fcntl
import os
import stat
from contextlib import suppress
from pathlib import Path

from stringd.system.safe_open import open_folder
from stringd.system.temporary_names import Noted, is_temporary, read_list


def remove_leftovers(directory: Path) -> list[Path]:
    """Remove what the lists of killed processes in `directory` name; what was removed."""
    try:
        lists = list(directory.iterdir())
    except OSError:
        return []
    removed = list[Path]()
    for path in lists:
        with suppress(OSError):
            removed += _settle(path)
    return removed


def _settle(path: Path) -> list[Path]:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        # Whoever holds it is alive, and what it names is under way.
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        removed = [noted.path for noted in read_list(file.read()) if _remove(noted)]
        path.unlink()
    return removed


def _remove(noted: Noted) -> bool:
    name = noted.path.name
    if not noted.path.is_absolute() or not is_temporary(name):
        return False
    try:
        with open_folder(noted.path.parent) as folder:
            status = os.stat(name, dir_fd=folder, follow_symlinks=False)
            if not stat.S_ISREG(status.st_mode) or noted.inode not in (None, status.st_ino):
                return False
            os.unlink(name, dir_fd=folder)
            return True
    except (OSError, ValueError):
        # It got its proper name, or its disk is not there.
        return False

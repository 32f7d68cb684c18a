"""The apps whose commands the owner of this account lets run outside the sandbox.

Their names are in `~/.string/sandbox.json`, each with the time it was opened, which counts only
while nobody but its owner can write it. Nothing that a daemon started can add one.
"""

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from time import time
from typing import Final

from stringd.system.files import held, make_private_directory, write_atomically
from stringd.system.lineage import started_by_a_daemon

_MAX_BYTES: Final = 1024 * 1024
_OTHERS_WRITE: Final = stat.S_IWGRP | stat.S_IWOTH


class OpenAppsError(Exception):
    """The owner's word could not be read or kept; `str()` says why and what to do."""


def open_apps_file() -> Path:
    """Where the names are kept."""
    return Path("~/.string/sandbox.json").expanduser()


class OpenApps:
    """The names, read again whenever their file has changed. Safe to share by threads."""

    def __init__(self, file: Path | None = None) -> None:
        self.file = file or open_apps_file()
        self._read: tuple[tuple[int, int, int], dict[str, float]] | None = None

    def opened_at(self, app: str) -> float | None:
        """When the owner opened an app, in seconds of the epoch; a file that does not count
        opens none.
        """
        try:
            return self._names().get(app)
        except OpenAppsError:
            return None

    def names(self) -> list[str]:
        """Every app that is open. Raises `OpenAppsError` when the file does not count."""
        return sorted(self._names())

    def open(self, app: str) -> None:
        """Let an app's commands run outside. Raises `OpenAppsError`."""
        self._change(lambda known: {**known, app: time()})

    def close(self, app: str) -> bool:
        """Keep them inside again; False when they were. Raises `OpenAppsError`."""
        was_open = app in self._names()
        if was_open:
            self._change(lambda known: {name: at for name, at in known.items() if name != app})
        return was_open

    def _change(self, changed: Callable[[dict[str, float]], dict[str, float]]) -> None:
        if started_by_a_daemon():
            raise OpenAppsError(
                "nothing was changed: a daemon started this program, and only you can say what "
                "runs outside the sandbox. Type the command in a terminal of your own."
            )
        try:
            make_private_directory(self.file.parent)
            with held(self.file.parent):
                value = {"open": changed(self._names())}
                write_atomically(self.file, (json.dumps(value) + "\n").encode(), 0o600)
        except OSError as error:
            raise OpenAppsError(f"cannot write {self.file}: {error.strerror}") from None

    def _names(self) -> dict[str, float]:
        flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        try:
            descriptor = os.open(self.file, flags)
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise OpenAppsError(f"cannot read {self.file}: {error.strerror}") from None
        with open(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            self._check_owner(status)
            mark = (status.st_ino, status.st_size, status.st_mtime_ns)
            known = self._read
            if known is None or known[0] != mark:
                known = (mark, self._parsed(file.read(_MAX_BYTES)))
                self._read = known
        return known[1]

    def _check_owner(self, status: os.stat_result) -> None:
        theirs = status.st_uid not in (os.geteuid(), 0) or status.st_mode & _OTHERS_WRITE
        if theirs or not stat.S_ISREG(status.st_mode):
            raise OpenAppsError(
                f"{self.file} is not a file that only you can write, so it does not count. Look "
                f"through it, then: chmod 600 {self.file}"
            )

    def _parsed(self, data: bytes) -> dict[str, float]:
        try:
            return {str(name): float(at) for name, at in json.loads(data)["open"].items()}
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise OpenAppsError(f"{self.file} is damaged. Move it away.") from None

"""Sandboxes that share the machine's network, and so reach the ports of daemons.

A daemon that makes one says so in a file of `~/.string/networked`, named after itself. The other
daemons of the account see there whose descendants they have to look at; inside a sandbox nothing of
`~/.string` can be changed.
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from stringd.system.files import make_private_directory
from stringd.system.lineage import holds_socket, is_descendant, is_marked
from stringd.system.processes.table import ProcessEntry, descendants, find

_FIELD: Final = b"\nSeccomp_filters:\t"
_MODE: Final = b"\nSeccomp:\t"


class NetworkWalls:
    """Whether sandboxes of this account share its network."""

    def __init__(self, directory: Path | None = None) -> None:
        self._directory = directory
        self._noted: Path | None = None
        self._made = False

    def note(self) -> None:
        """One that does is about to be made."""
        self._made = True
        if self._noted is not None:
            return
        own = find(os.getpid())
        if own is None:
            return
        # Where it cannot be written, other daemons do not know; this one does.
        with suppress(OSError):
            directory = self._place()
            make_private_directory(directory)
            self._noted = directory / _name(own)
            self._noted.touch(mode=0o600)

    def forget(self) -> None:
        """None is made any more."""
        if self._noted is not None:
            self._noted.unlink(missing_ok=True)
            self._noted = None

    def hold(self, inode: int) -> bool:
        """Whether a socket is in the hands of what runs in one of them. In doubt it is.

        Costs next to nothing before the first was made, else a look through the descendants of
        daemons and, while there are such, through processes until one that holds the socket is
        found.
        """
        if not any(is_walled(each.pid) for pid in self._daemons() for each in descendants(pid)):
            return False
        # The newest first: most clients have just been started.
        holder = next((pid for pid in sorted(_pids(), reverse=True) if holds_socket(pid, inode)), 0)
        return not holder or (is_walled(holder) and (is_descendant(holder) or is_marked(holder)))

    def _daemons(self) -> Iterator[int]:
        """Those that have made one and run still."""
        if self._made:
            yield os.getpid()
        try:
            names = os.listdir(self._place())  # noqa: PTH208 - for every connection
        except OSError:
            return
        for name in names:
            pid = name.partition("-")[0]
            if self._noted is not None and name == self._noted.name:
                continue
            process = find(int(pid)) if pid.isdecimal() else None
            if process is not None and _name(process) == name:
                yield process.pid
            else:
                # It was killed.
                (self._place() / name).unlink(missing_ok=True)

    def _place(self) -> Path:
        if self._directory is None:
            self._directory = Path("~/.string/networked").expanduser()
        return self._directory


network_walls: Final = NetworkWalls()


def is_walled(pid: int) -> bool:
    """Whether more filters on system calls hold the process than this one, as in a sandbox."""
    return _filters(pid) > _filters(os.getpid())


def _filters(pid: int) -> int:
    """How many there are; on kernels that do not count them, whether there is one."""
    with suppress(FileNotFoundError, ProcessLookupError, PermissionError):
        with open(f"/proc/{pid}/status", "rb") as file:
            text = file.read()
        counted = text.partition(_FIELD)[2].partition(b"\n")[0]
        return int(counted) if counted else int(text.partition(_MODE)[2][:1] == b"2")
    return 0


def _name(process: ProcessEntry) -> str:
    return f"{process.pid}-{process.started}"


def _pids() -> Iterator[int]:
    return (int(name) for name in os.listdir("/proc") if name.isdigit())  # noqa: PTH208

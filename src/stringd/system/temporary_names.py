"""Names of files that are about to take another one's place, written down before they exist.

Replacing a file takes two steps: the new one gets a name of its own, then the old one's. A process
that is killed between them leaves the first name behind, and nobody could say whose it is. So a
daemon notes the name and the inode first, in a list that it holds a lock on; `system.leftovers`
removes what the lists of killed daemons name. A process without a list notes nothing.
"""

import fcntl
import json
import os
import re
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Final, NamedTuple

DIRECTORY: Final = "unfinished"
"""Where in a data directory the lists are."""
_PATTERN: Final = re.compile(r"\..+\.[0-9a-f]{16}", re.DOTALL)
_ENOUGH_BYTES: Final = 64 * 1024
"""A list of this size is emptied as soon as nothing in it is under way."""


class Noted(NamedTuple):
    """A temporary name; `inode` is None where the file has its name before it is made."""

    path: Path
    inode: int | None


def temporary_name(name: str) -> str:
    """A name for what will be called `name`, which no other file has or gets by chance."""
    return f".{name[:40]}.{secrets.token_hex(8)}"


def is_temporary(name: str) -> bool:
    """Whether a name is of the kind that `temporary_name` makes."""
    return _PATTERN.fullmatch(name) is not None


class NameList:
    """The list of one process. Raises `OSError` when it cannot be made."""

    def __init__(self, path: Path) -> None:
        self.path = path
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        self._file = os.open(path, flags, 0o600)
        # Without locks in the file system nobody reads the list, and nothing is removed.
        with suppress(OSError):
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self._lock = threading.Lock()
        self._under_way = 0
        self._size = 0

    @contextmanager
    def noted(self, path: Path, inode: int | None) -> Iterator[None]:
        """Have a name in the list while it may exist."""
        # Escaped as ASCII: names of files need not be text.
        line = json.dumps([inode, str(path)]).encode("ascii") + b"\n"
        with self._lock:
            self._under_way += 1
            # A full disk: the file itself will say so.
            with suppress(OSError):
                self._size += os.write(self._file, line)
        try:
            yield
        finally:
            with self._lock:
                self._under_way -= 1
                if not self._under_way and self._size > _ENOUGH_BYTES:
                    self._size = 0
                    with suppress(OSError):
                        os.ftruncate(self._file, 0)

    def close(self) -> None:
        """Remove the list, unless something in it is still under way."""
        with self._lock:
            if not self._under_way:
                self.path.unlink(missing_ok=True)
            os.close(self._file)
            # What is written from here on fails, and is not noted.
            self._file = -1


_list: NameList | None = None
"""Files are replaced in every room, and the process has one list."""


@contextmanager
def noting(directory: Path) -> Iterator[None]:
    """Note every temporary name of this process in a list in `directory`, if one can be made."""
    global _list
    kept: NameList | None = None
    with suppress(OSError):
        directory.mkdir(mode=0o700, exist_ok=True)
        kept = NameList(directory / f"{os.getpid()}-{secrets.token_hex(4)}")
    _list = kept
    try:
        yield
    finally:
        _list = None
        if kept is not None:
            kept.close()


@contextmanager
def noted(path: Path, inode: int | None = None) -> Iterator[None]:
    """While a temporary file may have this name, the list of the process has it too."""
    names = _list
    with nullcontext() if names is None else names.noted(path, inode):
        yield


def read_list(content: bytes) -> Iterator[Noted]:
    """What a list names. A last line that was cut off is left out."""
    for line in content.split(b"\n")[:-1]:
        with suppress(ValueError, TypeError):
            inode, path = json.loads(line)
            if isinstance(path, str) and (inode is None or type(inode) is int):
                yield Noted(Path(path), inode)

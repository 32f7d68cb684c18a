"""Which files belong into a backup, and one moment of each while a daemon writes them."""

import hashlib
import os
import sqlite3
import stat
import tempfile
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import IO, Final, NamedTuple

from stringd.cli.backup.manifest import DATA, SHARED

_CHUNK: Final = 1024 * 1024
_SPOOLED: Final = 16 * _CHUNK
_SQLITE: Final = b"SQLite format 3\0"
# Of a running daemon, or of this machine: the next daemon makes them again.
_PASSING: Final = {
    SHARED: frozenset({"logs", "networked", "backups"}),
    DATA: frozenset({"logs", "daemons", "unfinished", "daemon.pid", "made-here.json"}),
}


class OwnedFile(NamedTuple):
    """A file or link, and its name in the archive."""

    name: str
    path: Path
    status: os.stat_result


class FileCopy(NamedTuple):
    """What a file held at one moment."""

    content: IO[bytes]
    size: int
    digest: str


def find(shared: Path, data: Path) -> list[OwnedFile]:
    """Everything that belongs to the owner. Raises `OSError`."""
    found = [
        *_walk(shared, shared, SHARED, skipped=data),
        *_walk(data, data, DATA, skipped=None),
    ]
    # A log read after its head has the head's record; the other way round it might lack it.
    return sorted(found, key=lambda each: (not each.name.endswith(".head"), each.name))


def is_kept(root: str, relative: str) -> bool:
    """Whether a path below one of the two directories belongs into a backup."""
    return relative.partition("/")[0] not in _PASSING[root] and not relative.endswith(
        (".db-wal", ".db-shm")
    )


def _walk(top: Path, folder: Path, root: str, *, skipped: Path | None) -> Iterator[OwnedFile]:
    if not folder.is_dir():
        return
    with os.scandir(folder) as entries:
        for each in sorted(entries, key=lambda entry: entry.name):
            path = Path(each.path)
            relative = path.relative_to(top).as_posix()
            if path == skipped or not is_kept(root, relative):
                continue
            try:
                status = each.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue
            if stat.S_ISDIR(status.st_mode):
                yield from _walk(top, path, root, skipped=skipped)
            elif stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode):
                yield OwnedFile(f"{root}/{relative}", path, status)


def copy(path: Path) -> FileCopy | None:
    """A file as it is at one moment; None when it is gone. Raises `OSError`."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    with open(descriptor, "rb") as file:
        if os.pread(descriptor, len(_SQLITE), 0) == _SQLITE:
            with suppress(sqlite3.Error):
                return _copy_database(path)
        size = os.fstat(descriptor).st_size
        if path.suffix == ".jsonl":
            size = _whole_lines(descriptor, size)
        return _copied(file, size)


def _copy_database(path: Path) -> FileCopy:
    with tempfile.TemporaryDirectory(prefix="stringd-backup-") as folder:
        twin = Path(folder, "copy.db")
        with closing(sqlite3.connect(path)) as live, closing(sqlite3.connect(twin)) as stored:
            live.backup(stored)
            # The copy is one file; a daemon turns the log on again.
            stored.execute("PRAGMA journal_mode = DELETE")
        with open(twin, "rb") as file:
            return _copied(file, twin.stat().st_size)


def _whole_lines(descriptor: int, size: int) -> int:
    """How much of a file that only grows consists of whole lines."""
    end = size
    while end:
        start = max(0, end - _CHUNK)
        newline = os.pread(descriptor, end - start, start).rfind(b"\n")
        if newline >= 0:
            return start + newline + 1
        end = start
    return 0


def _copied(file: IO[bytes], size: int) -> FileCopy:
    content: IO[bytes] = tempfile.SpooledTemporaryFile(_SPOOLED)  # noqa: SIM115
    digest, left = hashlib.sha256(), size
    while left and (chunk := file.read(min(_CHUNK, left))):
        digest.update(chunk)
        content.write(chunk)
        left -= len(chunk)
    content.seek(0)
    return FileCopy(content, size - left, digest.hexdigest())

"""The one door to files that somebody named: what was judged is what is opened.

Callers resolve a path first, links and all, and judge the result. Between that and the opening a
folder could be swapped for a symbolic link. So these functions take the resolved path, follow no
link in it, and work through the descriptor of its folder. Writing is all or nothing, keeps the
owner, access list and marks of the file it replaces, and leaves read-only files alone. A new file
has no other name before its own, where the file system can do that; one that replaces another has
a temporary one for a moment (`system.prepared_file`).
"""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple

from stringd.system.prepared_file import prepared

_STEP: Final = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class PathChangedError(OSError):
    """A part of the path is a symbolic link, which a resolved path does not have."""


class NotAFileError(OSError):
    """A directory, a pipe, a device or a socket is there instead of a regular file."""

    def __init__(self, path: Path, *, is_directory: bool) -> None:
        reason = "Is a directory" if is_directory else "Not a regular file"
        super().__init__(errno.EISDIR if is_directory else errno.EINVAL, reason, str(path))
        self.is_directory = is_directory


class FileTooLargeError(OSError):
    """The file has `size` bytes or more, which is above the caller's limit."""

    def __init__(self, path: Path, size: int) -> None:
        super().__init__(errno.EFBIG, os.strerror(errno.EFBIG), str(path))
        self.size = size


class FileContent(NamedTuple):
    """A file's bytes and its permission bits."""

    data: bytes
    mode: int


def read_file(real: Path, limit: int) -> FileContent:
    """A regular file of at most `limit` bytes, whole. Never waits for a pipe or a device.

    Raises `NotAFileError`, `FileTooLargeError`, `PathChangedError` or another `OSError`.
    """
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with _parent(real) as folder:
        try:
            descriptor = os.open(real.name or ".", flags, dir_fd=folder)
        except OSError as error:
            raise _named(error, real) from None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise NotAFileError(real, is_directory=stat.S_ISDIR(status.st_mode))
        if status.st_size > limit:
            raise FileTooLargeError(real, status.st_size)
        data = _read_whole(descriptor, status.st_size, limit)
    finally:
        os.close(descriptor)
    if len(data) > limit:
        raise FileTooLargeError(real, len(data))
    return FileContent(data, stat.S_IMODE(status.st_mode))


def create_file(real: Path, data: bytes, mode: int = 0o666) -> None:
    """A new file, whole or not at all; the umask narrows `mode`.

    Raises `FileExistsError`, `PathChangedError` or another `OSError`.
    """
    with open_folder(real.parent) as folder:
        with prepared(folder, real, data, mode & ~umask()) as new:
            new.take_free_name()
        os.fsync(folder)


def replace_file(
    real: Path,
    data: bytes,
    mode: int | None = None,
    *,
    even_read_only: bool = False,
    synced: bool = True,
) -> None:
    """New content for a file, or a new file, whole or not at all.

    Without `mode` the file keeps its own, and a new one gets what the umask leaves of 0666. A
    link that took the file's place is replaced, never followed. Raises `NotAFileError`,
    `PathChangedError` or another `OSError`; the file is then as it was.
    """
    with open_folder(real.parent) as folder:
        old = _status(folder, real)
        # A rename asks nobody, but whoever made a file read-only meant it.
        if old is not None and not even_read_only and not _writable(folder, real.name):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(real))
        if mode is None:
            mode = 0o666 & ~umask() if old is None else stat.S_IMODE(old.st_mode)
        with prepared(folder, real, data, mode, old, synced=synced) as new:
            new.take_name()
        if synced:
            os.fsync(folder)


def remove_file(real: Path) -> None:
    """Remove a file. Raises `PathChangedError` or another `OSError`."""
    with open_folder(real.parent) as folder:
        os.unlink(real.name, dir_fd=folder)
        os.fsync(folder)


def make_folders(real: Path, mode: int = 0o777) -> None:
    """A folder and those above it, each made inside the one before; the umask narrows `mode`.

    Raises `NotADirectoryError`, `PathChangedError` or another `OSError`.
    """
    os.close(_walk(real, make=mode))


@contextmanager
def open_folder(real: Path) -> Iterator[int]:
    """A folder as a descriptor to list it or to work in it.

    Raises `PathChangedError` or another `OSError`.
    """
    with _reached(real) as reached:
        descriptor = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=reached)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def umask() -> int:
    """The process's mask, without touching it: setting it to read it would race."""
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii")
        return int(next(line for line in status.splitlines() if line.startswith("Umask"))[6:], 8)
    except (OSError, StopIteration, ValueError):
        return 0o022


@contextmanager
def _parent(real: Path) -> Iterator[int]:
    with _reached(real.parent) as folder:
        yield folder


@contextmanager
def _reached(real: Path) -> Iterator[int]:
    """A folder that need not be readable, as a descriptor to open what is in it."""
    descriptor = _reach(real)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _reach(real: Path) -> int:
    # Most often nothing changed. Opening by name only to look where that led has no effect.
    try:
        descriptor = os.open(real, _STEP)
    except OSError:
        return _walk(real)
    try:
        if os.readlink(f"/proc/self/fd/{descriptor}") == str(real):  # noqa: PTH115
            return descriptor
    except OSError:
        pass
    os.close(descriptor)
    return _walk(real)


def _walk(real: Path, make: int | None = None) -> int:
    """Step from folder to folder, following no link; with `make`, make those that are missing."""
    folder = os.open(real.anchor, _STEP)
    for name in real.parts[1:]:
        above = folder
        try:
            folder = _step(above, name, make)
        except OSError as error:
            raise _named(error, real) from None
        finally:
            os.close(above)
    return folder


def _step(folder: int, name: str, make: int | None) -> int:
    try:
        return os.open(name, _STEP, dir_fd=folder)
    except FileNotFoundError:
        if make is None:
            raise
        with suppress(FileExistsError):
            os.mkdir(name, make, dir_fd=folder)
        return os.open(name, _STEP, dir_fd=folder)
    except NotADirectoryError:
        if stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP)) from None
        raise


def _named(error: OSError, real: Path) -> OSError:
    """The error with the whole path in it, and with its own type for links."""
    kind = PathChangedError if error.errno == errno.ELOOP else type(error)
    return kind(error.errno, error.strerror, str(real))


def _read_whole(descriptor: int, expected: int, limit: int) -> bytes:
    """Everything, or a little more than the limit."""
    pieces, found = list[bytes](), 0
    while found <= limit and (piece := os.read(descriptor, expected + 1)):
        pieces.append(piece)
        found += len(piece)
    return b"".join(pieces)


def _status(folder: int, real: Path) -> os.stat_result | None:
    """What is known of the file to replace; None when there is none, or a link."""
    try:
        status = os.stat(real.name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    if stat.S_ISLNK(status.st_mode):
        return None
    if not stat.S_ISREG(status.st_mode):
        raise NotAFileError(real, is_directory=stat.S_ISDIR(status.st_mode))
    return status


def _writable(folder: int, name: str) -> bool:
    return os.access(name, os.W_OK, dir_fd=folder, effective_ids=True)

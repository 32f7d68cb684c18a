"""The one door to file contents: only places a guard has let through, and exactly those.

Between the guard's answer and the opening of a file a folder could be swapped for a symlink.
So what was opened is compared with what was allowed, and writing goes through the open folder.
"""

import errno
import hashlib
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple
from uuid import uuid4

from stringd.runs.guard.errors import Denied
from stringd.runs.guard.workspace import WorkspacePath
from stringd.runs.tools.output import ToolFailure

# Whole files are hashed and held while they are worked on.
MAX_BYTES: Final = 64 * 1024 * 1024
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


class FileContent(NamedTuple):
    """A file's bytes, their hash and its permission bits."""

    data: bytes
    sha256: str
    mode: int


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def read(place: WorkspacePath) -> FileContent:
    """A regular file, whole. Raises `ToolFailure`, `Denied` or `OSError`."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        descriptor = os.open(place.real, flags)
    except (FileNotFoundError, NotADirectoryError):
        raise missing(place) from None
    try:
        _same(descriptor, place.real)
        status = os.fstat(descriptor)
        if stat.S_ISDIR(status.st_mode):
            raise ToolFailure(
                "not_found",
                f"{place.shown} is a directory",
                path=place.shown,
                next_step="use list_directory to see what is in it",
            )
        if not stat.S_ISREG(status.st_mode):
            raise ToolFailure("not_found", f"{place.shown} is no regular file", path=place.shown)
        if status.st_size > MAX_BYTES:
            raise _too_large(place, status.st_size)
        data = _whole(descriptor)
    finally:
        os.close(descriptor)
    if len(data) > MAX_BYTES:
        raise _too_large(place, len(data))
    return FileContent(data, sha256(data), stat.S_IMODE(status.st_mode))


def _whole(descriptor: int) -> bytes:
    """Everything, or one byte more than is accepted."""
    found = bytearray()
    while len(found) <= MAX_BYTES and (piece := os.read(descriptor, 1024 * 1024)):
        found += piece
    return bytes(found)


def create(place: WorkspacePath, data: bytes, mode: int = 0o666) -> None:
    """A new file, whole or not at all, never over another. Raises `ToolFailure` or `OSError`."""
    with _folder(place) as folder:
        temporary = _temporary(folder, data, mode & ~_umask())
        try:
            _name_new(folder, temporary, place.real.name)
        except FileExistsError:
            raise exists(place) from None
        finally:
            with suppress(FileNotFoundError):
                os.unlink(temporary, dir_fd=folder)
        os.fsync(folder)


def _name_new(folder: int, temporary: str, name: str) -> None:
    """Give a file a name nobody has yet. Raises `FileExistsError` or another `OSError`."""
    try:
        os.link(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS):
            raise
        # A file system without hard links: claim the name, then put the file over the claim.
        claim = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        os.close(os.open(name, claim, 0o600, dir_fd=folder))
        os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)


def replace(place: WorkspacePath, data: bytes, mode: int) -> None:
    """New content for a file, whole or not at all. Raises `ToolFailure` or `OSError`."""
    with _folder(place) as folder:
        temporary = _temporary(folder, data, mode, _owner(folder, place.real.name))
        try:
            os.rename(temporary, place.real.name, src_dir_fd=folder, dst_dir_fd=folder)
        except OSError:
            os.unlink(temporary, dir_fd=folder)
            raise
        os.fsync(folder)


def remove(place: WorkspacePath) -> None:
    """Remove a file. Raises `ToolFailure` or `OSError`."""
    with _folder(place) as folder:
        os.unlink(place.real.name, dir_fd=folder)
        os.fsync(folder)


def is_there(place: WorkspacePath) -> bool:
    return os.path.lexists(place.real)


def missing(place: WorkspacePath) -> ToolFailure:
    return ToolFailure(
        "not_found",
        f"No such file: {place.shown}",
        path=place.shown,
        next_step="use list_directory or glob to find the right path",
    )


def exists(
    place: WorkspacePath, next_step: str = "read it, then use write_file or edit_file"
) -> ToolFailure:
    return ToolFailure(
        "already_exists", f"{place.shown} exists already", path=place.shown, next_step=next_step
    )


def _too_large(place: WorkspacePath, size: int) -> ToolFailure:
    return ToolFailure(
        "file_too_large",
        f"{place.shown} has {size} bytes; at most {MAX_BYTES} can be handled",
        path=place.shown,
        next_step="use run_command with head, tail or grep",
    )


def make_parents(place: WorkspacePath) -> None:
    """The folders above a place, each made inside the one before. Raises `Denied` or `OSError`."""
    missing, there = list[str](), place.real.parent
    while not os.path.lexists(there):
        missing.append(there.name)
        there = there.parent
    with open_folder(there) as opened:
        folder = os.dup(opened)
    try:
        for name in reversed(missing):
            with suppress(FileExistsError):
                os.mkdir(name, dir_fd=folder)
            above, folder = folder, os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=folder)
            os.close(above)
    finally:
        os.close(folder)


@contextmanager
def open_folder(real: Path) -> Iterator[int]:
    """A folder by its real path, as a descriptor. Raises `Denied` or `OSError`."""
    descriptor = os.open(real, _FOLDER)
    try:
        _same(descriptor, real)
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def _folder(place: WorkspacePath) -> Iterator[int]:
    with ExitStack() as opened:
        try:
            folder = opened.enter_context(open_folder(place.real.parent))
        except (FileNotFoundError, NotADirectoryError):
            raise ToolFailure(
                "not_found", f"The folder of {place.shown} does not exist", path=place.shown
            ) from None
        yield folder


def _same(descriptor: int, wanted: Path) -> None:
    """Refuse when what was opened is not what was allowed."""
    if sys.platform == "linux" and Path(f"/proc/self/fd/{descriptor}").readlink() != wanted:
        raise Denied(f"{wanted} changed while it was being opened")


def _temporary(folder: int, data: bytes, mode: int, owner: tuple[int, int] | None = None) -> str:
    """A whole file under a name of its own; before it is whole it has none, where possible."""
    name, nameless = f".{uuid4().hex}.tmp", _nameless(folder)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    opened = os.open(name, flags, 0o600, dir_fd=folder) if nameless is None else nameless
    with os.fdopen(opened, "wb") as file:
        try:
            file.write(data)
            file.flush()
            if owner is not None:
                with suppress(PermissionError):
                    os.fchown(opened, *owner)
            os.fchmod(opened, mode)
            os.fsync(opened)
            if nameless is not None:
                os.link(f"/proc/self/fd/{opened}", name, dst_dir_fd=folder)
        except OSError:
            if nameless is None:
                os.unlink(name, dir_fd=folder)
            raise
    return name


def _nameless(folder: int) -> int | None:
    """A file a crash leaves nothing of; not every file system has them."""
    if sys.platform != "linux":
        return None
    with suppress(OSError):
        return os.open(".", os.O_TMPFILE | os.O_WRONLY | os.O_CLOEXEC, 0o600, dir_fd=folder)
    return None


def _owner(folder: int, name: str) -> tuple[int, int] | None:
    with suppress(OSError):
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
        return status.st_uid, status.st_gid
    return None


def _umask() -> int:
    """The process's mask, without touching it: setting it to read it would race."""
    try:
        for line in Path("/proc/self/status").read_text("ascii").splitlines():
            if line.startswith("Umask:"):
                return int(line.split()[1], 8)
    except OSError:
        pass
    return 0o022

"""Writing files so that a crash at any moment leaves the old text or the new one."""

import errno
import fcntl
import os
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

_NAMELESS: Final = os.O_TMPFILE if Path("/proc/self/fd").is_dir() else None
_NO_NAMELESS_FILES: Final = (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL, errno.ENOENT)
"""What file systems and kernels answer that do not know `O_TMPFILE`."""


def make_private_directory(path: Path) -> None:
    """Create a directory (and its parents) that only its owner may enter."""
    if path.is_dir():
        return
    make_private_directory(path.parent)
    path.mkdir(mode=0o700, exist_ok=True)


@contextmanager
def held(directory: Path) -> Iterator[None]:
    """Keep everybody else out, other daemons too, while files of a directory are replaced."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        # A file system without locks is no reason to refuse what nobody else may be doing.
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def write_atomically(path: Path, data: bytes, mode: int) -> None:
    """Replace `path` by `data` in one step, synced to disk before and after the rename.

    The new file belongs to whom the old one belonged to, as far as we may say so, and keeps the
    access list and the marks its owner gave it.
    """
    temporary = path.with_name(f".{path.name[:40]}.{secrets.token_hex(4)}")
    try:
        _write(temporary, data, mode, path)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync_directory(path.parent)


def _write(path: Path, data: bytes, mode: int, old: Path) -> None:
    """A new file. Where possible it has no name before it is whole: a crash leaves nothing."""
    nameless = _nameless_file(path.parent)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    descriptor = os.open(path, flags, 0o600) if nameless is None else nameless
    with os.fdopen(descriptor, "wb") as file:
        _give_to_owner(descriptor, old)
        os.fchmod(descriptor, mode)
        _copy_attributes(descriptor, old)
        file.write(data)
        file.flush()
        os.fsync(descriptor)
        if nameless is not None:
            # With a directory given, `link` follows the descriptor's own link to the file.
            os.link(f"/proc/self/fd/{descriptor}", path, src_dir_fd=descriptor)


def _give_to_owner(descriptor: int, old: Path) -> None:
    try:
        status = old.stat()
    except OSError:
        return
    try:
        os.fchown(descriptor, status.st_uid, status.st_gid)
    except PermissionError:
        # Not our file to give away; its group may still be ours, and others work through that.
        with suppress(PermissionError):
            os.fchown(descriptor, -1, status.st_gid)


def _copy_attributes(descriptor: int, old: Path) -> None:
    if sys.platform != "linux":
        return
    # No old file, or a file system that keeps none.
    with suppress(OSError):
        for name in os.listxattr(old):
            if name.startswith("user.") or name == "system.posix_acl_access":
                os.setxattr(descriptor, name, os.getxattr(old, name))


def _nameless_file(directory: Path) -> int | None:
    if _NAMELESS is None:
        return None
    try:
        return os.open(directory, _NAMELESS | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    except OSError as error:
        if error.errno in _NO_NAMELESS_FILES:
            return None
        raise


def _sync_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

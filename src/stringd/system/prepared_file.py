"""A file that is whole and synced before it has its name.

Where the file system can do that it has no name at all until then, so a crash leaves nothing of it.
Only to take the place of another file it needs a temporary one for a moment; that is noted first
(`system.temporary_names`), so that whoever comes after a crash knows whose it is.
"""

import errno
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final

from stringd.system.temporary_names import noted, temporary_name

_NAMELESS: Final = os.O_TMPFILE if Path("/proc/self/fd").is_dir() else None
_NO_NAMELESS_FILES: Final = (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL, errno.ENOENT)
"""What file systems and kernels answer that do not know `O_TMPFILE`."""
_NO_HARD_LINKS: Final = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS)
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class PreparedFile:
    """A file in the making. `real` is where it will be, `folder` the descriptor of its folder."""

    def __init__(self, folder: int, real: Path, names: ExitStack, *, replaces: bool) -> None:
        self._folder = folder
        self._real = real
        self._names = names
        self._replaces = replaces
        self._temporary: str | None = None
        nameless = _nameless(folder)
        self.descriptor = self._open_named() if nameless is None else nameless

    def take_free_name(self) -> None:
        """Give it its name, which nobody has. Raises `FileExistsError` or another `OSError`."""
        folder, name = self._folder, self._real.name
        if self._temporary is None:
            self._link(name)
            return
        try:
            os.link(self._temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        except OSError as error:
            if error.errno not in _NO_HARD_LINKS:
                raise
            # A file system without hard links: claim the name, then put the file over the claim.
            os.close(os.open(name, _NEW, 0o600, dir_fd=folder))
            os.rename(self._temporary, name, src_dir_fd=folder, dst_dir_fd=folder)

    def take_name(self) -> None:
        """Give it its name, whoever has it now. Raises `OSError`."""
        if self._temporary is None:
            if not self._replaces:
                # If somebody else made the file meanwhile, it is replaced like any other.
                with suppress(FileExistsError):
                    self._link(self._real.name)
                    return
            self._temporary = self._note(os.fstat(self.descriptor).st_ino)
            self._link(self._temporary)
            self._names.callback(self._unlink, self._temporary)
        folder = self._folder
        os.rename(self._temporary, self._real.name, src_dir_fd=folder, dst_dir_fd=folder)

    def _open_named(self) -> int:
        self._temporary = self._note(None)
        descriptor = os.open(self._temporary, _NEW, 0o600, dir_fd=self._folder)
        self._names.callback(self._unlink, self._temporary)
        return descriptor

    def _note(self, inode: int | None) -> str:
        temporary = temporary_name(self._real.name)
        self._names.enter_context(noted(self._real.with_name(temporary), inode))
        return temporary

    def _link(self, name: str) -> None:
        # With a directory given, `link` follows the descriptor's own link to the file.
        source = f"/proc/self/fd/{self.descriptor}"
        os.link(source, name, src_dir_fd=self.descriptor, dst_dir_fd=self._folder)

    def _unlink(self, temporary: str) -> None:
        with suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=self._folder)


@contextmanager
def prepared(
    folder: int,
    real: Path,
    data: bytes,
    mode: int,
    old: os.stat_result | None = None,
    *,
    synced: bool = True,
) -> Iterator[PreparedFile]:
    """A file with `data`, without its name yet; without one at the end, nothing is left of it.

    It gets the owner, the access list and the marks of the `old` one that it will replace. Unless
    it is `synced`, it may be gone or empty after a power cut. Raises `OSError`.
    """
    with ExitStack() as names:
        new = PreparedFile(folder, real, names, replaces=old is not None)
        with os.fdopen(new.descriptor, "wb") as file:
            if old is not None:
                _give_to(new.descriptor, old)
            os.fchmod(new.descriptor, mode)
            if old is not None:
                _copy_attributes(new.descriptor, f"/proc/self/fd/{folder}/{real.name}")
            file.write(data)
            file.flush()
            if synced:
                os.fsync(new.descriptor)
            yield new


def _nameless(folder: int) -> int | None:
    """A file a crash leaves nothing of; not every file system has them."""
    if _NAMELESS is None:
        return None
    try:
        return os.open(".", _NAMELESS | os.O_WRONLY | os.O_CLOEXEC, 0o600, dir_fd=folder)
    except OSError as error:
        if error.errno in _NO_NAMELESS_FILES:
            return None
        raise


def _give_to(descriptor: int, old: os.stat_result) -> None:
    try:
        os.fchown(descriptor, old.st_uid, old.st_gid)
    except PermissionError:
        # Not our file to give away; its group may still be ours, and others work through that.
        with suppress(PermissionError):
            os.fchown(descriptor, -1, old.st_gid)


def _copy_attributes(descriptor: int, old: str) -> None:
    # A file system that keeps none, or a link that took the place of the file.
    with suppress(OSError):
        for name in os.listxattr(old, follow_symlinks=False):
            if name.startswith("user.") or name == "system.posix_acl_access":
                value = os.getxattr(old, name, follow_symlinks=False)
                os.setxattr(descriptor, name, value)

"""Writing files so that a crash at any moment leaves the old text or the new one."""

import os
import tempfile
from pathlib import Path


def make_private_directory(path: Path) -> None:
    """Create a directory (and its parents) that only its owner may enter."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)


def write_atomically(path: Path, data: bytes, mode: int) -> None:
    """Replace `path` by `data` in one step, synced to disk before and after the rename."""
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name[:40]}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            os.fchmod(file.fileno(), mode)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    _sync_directory(path.parent)


def _sync_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

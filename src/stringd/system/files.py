"""Files of our own: private directories, locks, and writes a crash cannot tear."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from stringd.system.safe_open import replace_file


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
        # Without locks in the file system, nobody else is assumed to be at work.
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def try_hold(directory: Path) -> Iterator[bool]:
    """Like `held`, without waiting: whether nobody else holds it. Raises `OSError`."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        except OSError:
            # Without locks in the file system, nobody else is assumed to be at work.
            pass
        yield True
    finally:
        os.close(descriptor)


def write_atomically(path: Path, data: bytes, mode: int, *, synced: bool = True) -> None:
    """Replace `path` by `data` in one step, synced to disk before and after the rename.

    What is not `synced` survives the process; a power cut may leave nothing of it, or no bytes.

    Links on the way to its directory are followed, one that is the file itself is replaced. The
    new file belongs to the owner of the old one, as far as we may say so, and keeps its access
    list and marks.
    """
    real = Path(os.path.realpath(path.parent), path.name)
    replace_file(real, data, mode, even_read_only=True, synced=synced)

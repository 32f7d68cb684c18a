"""The gate's socket file: private, never taken from a living gate, never left behind."""

import errno
import fcntl
import os
import socket
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from stringd.gate.errors import TroubleError, os_text

LOCK_ATTEMPTS: Final = 60
LOCK_PAUSE: Final = 0.05


class Listener:
    """A listening Unix socket at a path. Raises `TroubleError` when it cannot be had."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.socket = _bind(path)
        self._identity = _identity(path)

    @property
    def is_in_place(self) -> bool:
        """Whether the socket file is still the one we made."""
        return _identity(self.path) == self._identity

    def bind_again(self) -> socket.socket:
        """Listen at the path once more after its file was removed. Raises `TroubleError`."""
        listening = _bind(self.path)
        self.socket.close()
        self.socket, self._identity = listening, _identity(self.path)
        return listening

    def unlink(self) -> None:
        """Remove the socket file if it is still the one we made."""
        if self.is_in_place:
            self.path.unlink(missing_ok=True)

    def close(self) -> None:
        self.socket.close()
        self.unlink()


def _bind(path: Path) -> socket.socket:
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    # The file must not exist with wider bits even for a moment.
    umask = os.umask(0o177)
    try:
        with _alone_at(path.parent):
            _bind_or_take_over(listening, path)
            _open_for_business(listening, path)
    except OSError as error:
        listening.close()
        raise TroubleError(f"cannot listen on {path}: {_text(error)}") from None
    except TroubleError:
        listening.close()
        raise
    finally:
        os.umask(umask)
    return listening


def _bind_or_take_over(listening: socket.socket, path: Path) -> None:
    try:
        listening.bind(str(path))
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise
        _take_over(path)
        listening.bind(str(path))


def _open_for_business(listening: socket.socket, path: Path) -> None:
    try:
        # At once, because whoever waits for the file to appear connects as soon as it does.
        listening.listen(1024)
        path.chmod(0o600)
    except OSError:
        path.unlink(missing_ok=True)
        raise


@contextmanager
def _alone_at(folder: Path) -> Iterator[None]:
    """One gate at a time looks whether a socket is dead; two might each take the other's for it."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        _lock(descriptor)
        yield
    finally:
        os.close(descriptor)


def _lock(descriptor: int) -> None:
    for _ in range(LOCK_ATTEMPTS):
        with suppress(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        time.sleep(LOCK_PAUSE)
    raise TroubleError("another gate is starting on this socket and holds the lock; try again")


def _take_over(path: Path) -> None:
    """Remove a dead gate's socket. A living one, and anything that is not ours, is left alone."""
    found = path.lstat()
    if stat.S_ISLNK(found.st_mode):
        raise TroubleError(f"{path} is a symbolic link; remove it or choose another --socket")
    if stat.S_ISSOCK(found.st_mode) and _answers(path):
        raise TroubleError(f"stringd gate is already running on {path}")
    if not stat.S_ISSOCK(found.st_mode) and found.st_uid != os.getuid():
        raise TroubleError(f"{path} is somebody else's file; choose another --socket")
    path.unlink()


def _answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1)
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            return False
        except OSError as error:
            # A full backlog is a sign of life.
            return error.errno != errno.ENOENT
        return True


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.lstat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _text(error: OSError) -> str:
    # An overlong path is the one failure without a number.
    return os_text(error) if error.errno else str(error)

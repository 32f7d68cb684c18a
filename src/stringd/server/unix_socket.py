"""The daemon's Unix socket: private, never taken from a live daemon, removed when it stops."""

import errno
import fcntl
import os
import secrets
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from stringd.system.files import make_private_directory
from stringd.system.peers import unix_peer


class SocketRefusedError(Exception):
    """The socket cannot be had at this path; `str()` says why and what to do."""


class UnixSocket:
    """A listening Unix socket at a path that only its owner can use."""

    def __init__(self, path: Path) -> None:
        """Listen. Raises `SocketRefusedError`."""
        self.path = path
        try:
            self.listener = _listen(path)
            self._identity = _identity(path)
        except OSError as error:
            reason = error.strerror or str(error)
            raise SocketRefusedError(
                f"no Unix socket at {path}: {reason}. STRINGD_SOCKET chooses another path."
            ) from error

    def close(self) -> None:
        """Stop listening, and remove the file unless another daemon has replaced it."""
        self.listener.close()
        if _identity(self.path) == self._identity:
            self.path.unlink(missing_ok=True)


def _listen(path: Path) -> socket.socket:
    """Bind under another name, so that the file has its mode and its listener when it appears."""
    make_private_directory(path.parent)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    temporary = path.with_name(f".{secrets.token_hex(4)}.sock")
    try:
        with _alone_in(path.parent):
            _refuse_unless_stale(path)
            listener.bind(str(temporary))
            temporary.chmod(0o600)
            listener.listen(1024)
            temporary.rename(path)
    except BaseException:
        listener.close()
        temporary.unlink(missing_ok=True)
        raise
    listener.setblocking(False)
    return listener


@contextmanager
def _alone_in(directory: Path) -> Iterator[None]:
    """Two daemons that start at once must not each take the other's socket for a stale one."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _refuse_unless_stale(path: Path) -> None:
    try:
        found = path.lstat()
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(found.st_mode):
        raise SocketRefusedError(
            f"no Unix socket at {path}: another file is there. "
            "Remove it, or choose another path with STRINGD_SOCKET."
        )
    holder = _who_answers(path)
    if holder is not None:
        raise SocketRefusedError(
            f"no Unix socket at {path}: another daemon has it{holder}. "
            "Stop that one, or choose another path with STRINGD_SOCKET."
        )


def _who_answers(path: Path) -> str | None:
    """The process behind a socket, for people to read; None when nobody is."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        try:
            probe.connect(str(path))
        except OSError as error:
            # A full backlog is a sign of life.
            return None if error.errno in (errno.ECONNREFUSED, errno.ENOENT) else ""
        return f" (process {unix_peer(probe)[0]})"


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.lstat()
    except OSError:
        return None
    return found.st_dev, found.st_ino

"""Which daemon uses a data directory: it holds a lock on a small file that says how to reach it.

Standard library only: `string` reads it before every command.
"""

import fcntl
import os


class Holder:
    """A running daemon."""

    __slots__ = ("pid", "port", "version")

    def __init__(self, pid: int, port: int, version: str) -> None:
        self.pid = pid
        self.port = port
        self.version = version


_NAME = "daemon.pid"


def hold(directory: "str | os.PathLike[str]", port: int, version: str) -> "Holder | None":
    """Say until this process ends that it uses a directory; who does already, if somebody does.

    Raises `OSError`.
    """
    descriptor = os.open(
        f"{os.fspath(directory)}/{_NAME}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600
    )
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        found = _parsed(os.read(descriptor, 4096))
        os.close(descriptor)
        return found
    except OSError:
        # A disk that knows no locks still says which daemon came last.
        pass
    os.ftruncate(descriptor, 0)
    os.write(descriptor, f"{os.getpid()} {port} {version}\n".encode())
    return None


def holder(directory: "str | os.PathLike[str]") -> "Holder | None":
    """The daemon that uses a directory now; None when there is none."""
    try:
        descriptor = os.open(f"{os.fspath(directory)}/{_NAME}", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _parsed(os.read(descriptor, 4096))
    except OSError:
        return None
    finally:
        os.close(descriptor)
    return None


def _parsed(content: bytes) -> "Holder | None":
    pid, _, rest = content.decode("utf-8", "replace").strip().partition(" ")
    port, _, version = rest.partition(" ")
    if pid.isdecimal() and port.isdecimal():
        return Holder(int(pid), int(port), version)
    return None

"""Bytes that can no longer change: copies without a name, and files nobody may open for writing."""

import fcntl
import os
import signal
from contextlib import suppress
from typing import Final

# A larger file is held and compared, but neither copied nor hashed while a person waits.
MAX_BYTES: Final = 64 * 1024 * 1024
_PIECE: Final = 1024 * 1024
_SEALS: Final = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE
# Not in Python's `os` yet: the copy may be executed where the system asks for that to be said.
_MFD_EXEC: Final = 0x10
_F_SETSIG: Final = 10


def copy(file: int) -> int:
    """A sealed copy of an open file, as a descriptor that programs can execute or read."""
    flags = os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING
    try:
        made = os.memfd_create("stringd-gate", flags | _MFD_EXEC)
    except OSError:
        # A kernel older than the flag lets every copy be executed.
        made = os.memfd_create("stringd-gate", flags)
    try:
        offset = 0
        while piece := os.pread(file, _PIECE, offset):
            offset += os.pwrite(made, piece, offset)
            if offset > MAX_BYTES:
                raise OSError(27, os.strerror(27))
        fcntl.fcntl(made, fcntl.F_ADD_SEALS, _SEALS)
    except OSError:
        os.close(made)
        raise
    return made


def digest(file: int) -> str:
    """The SHA-256 of an open file."""
    from hashlib import sha256  # fast for what is large, and only then worth its memory

    whole, offset = sha256(), 0
    while piece := os.pread(file, _PIECE, offset):
        whole.update(piece)
        offset += len(piece)
    return whole.hexdigest()


def lease(file: int) -> bool:
    """Have the system hold up whoever opens the file for writing; False where it cannot."""
    try:
        # Told by a signal that does nothing; the usual one would end us.
        fcntl.fcntl(file, _F_SETSIG, signal.SIGURG)
        fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    except OSError:
        return False
    return True


def end_lease(file: int) -> None:
    with suppress(OSError):
        fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_UNLCK)

"""Finds the file a command will run, once, so that what was shown is what is executed."""

import errno
import os
import stat
from collections.abc import Iterable
from typing import Final

from stringd.gate.errors import TroubleError
from stringd.gate.program import Identity, Program

# What every child gets; also where the names of privileged commands are looked up, because sudo is
# handed the full path and its own search never happens.
CHILD_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def resolve(word: str, search: str = CHILD_PATH, *, as_root: bool = False) -> Program:
    """The program a word names. A relative path is read from `/`, where children run."""
    problem = errno.ENOENT
    for candidate in _candidates(word, search):
        try:
            return _program(word, candidate, as_root)
        except PermissionError:
            problem = errno.EACCES
            # Root may reach what we may not look at; nobody of our rank can swap it either.
            if as_root and "/" in word and not os.access(candidate, os.F_OK):
                return Program(word, candidate)
        except OSError:
            continue
    return Program(word, None, errno=problem)


def confirm(program: Program) -> str:
    """The path to execute.

    Raises `OSError` if there was none, `TroubleError` if the file is not the one that was shown.
    """
    if program.path is None:
        raise OSError(program.errno, os.strerror(program.errno))
    if program.identity is None:
        return program.path
    try:
        same = _identity(program.path) == program.identity
    except OSError:
        same = False
    if not same or _real(program.path) != program.real:
        raise TroubleError("command changed after approval")
    return program.path


def _candidates(word: str, search: str) -> Iterable[str]:
    if "/" in word:
        return [word if word.startswith("/") else f"/{word}"]
    return [f"{directory}/{word}" for directory in search.split(":") if directory and word]


def _program(word: str, path: str, as_root: bool) -> Program:
    identity = _identity(path)
    if not as_root and not os.access(path, os.X_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    return Program(word, path, _real(path), identity)


def _identity(path: str) -> Identity:
    found = os.stat(path)  # noqa: PTH116  (a Path would rewrite the name that was shown)
    if not stat.S_ISREG(found.st_mode) or not found.st_mode & 0o111:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    return Identity(found.st_dev, found.st_ino, found.st_size, found.st_ctime_ns)


def _real(path: str) -> str | None:
    try:
        return os.path.realpath(path, strict=True)
    except OSError:
        return None

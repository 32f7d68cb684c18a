"""Finds the file a command will run and holds it, so that what was shown is what is executed."""

import errno
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Final

from stringd.gate import sealed
from stringd.gate.errors import TroubleError
from stringd.gate.program import Held, Identity, ShownProgram
from stringd.gate.trust import Weakness, is_fixed, weaknesses

# What every child gets; also where the names of privileged commands are looked up, because sudo is
# handed the full path and its own search never happens.
CHILD_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
CHANGED: Final = "command changed after approval"

_ELF: Final = b"\x7fELF"
# The system reads no more of a line that names an interpreter.
_FIRST_LINE: Final = 256
_QUIETLY: Final = os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY


def resolve(word: str, search: str = CHILD_PATH, *, as_root: bool = False) -> ShownProgram:
    """The program a word names, not held. A relative path is read from `/`, where children run."""
    program = hold(word, search, as_root=as_root)
    release(program)
    return replace(program, held=None)


def hold(word: str, search: str = CHILD_PATH, *, as_root: bool = False) -> ShownProgram:
    """The program a word names, open from now until `release`."""
    problem = errno.ENOENT
    for candidate in _candidates(word, search):
        try:
            return _program(word, candidate, as_root)
        except PermissionError:
            problem = errno.EACCES
            # Root may reach what we may not look at; programs of ours cannot swap it either.
            if as_root and "/" in word and not os.access(candidate, os.F_OK):
                return ShownProgram(word, candidate)
        except OSError as error:
            if error.errno in (errno.EMFILE, errno.ENFILE):
                raise TroubleError(f"the program cannot be held open: {error.strerror}") from None
            continue
    return ShownProgram(word, None, errno=problem)


def release(program: ShownProgram) -> None:
    """Close what a program held."""
    if program.held is not None:
        for descriptor in (program.held.file, program.held.copy):
            if descriptor is not None:
                with suppress(OSError):
                    os.close(descriptor)


def confirm(program: ShownProgram) -> str:
    """The path that was shown.

    Raises `OSError` if there was none, `TroubleError` if it does not lead to the file that was
    shown any more, or if that file was written to.
    """
    if program.path is None:
        raise OSError(program.errno, os.strerror(program.errno))
    if program.identity is None:
        return program.path
    try:
        same = _identity(os.stat(program.path)) == program.identity  # noqa: PTH116  (as shown)
        held = program.held
        if same and held is not None:
            same = _identity(os.fstat(held.file)) == program.identity
            if same and held.digest is not None:
                same = sealed.digest(held.file) == held.digest
    except OSError:
        same = False
    if not same or _real(program.path) != program.real:
        raise TroubleError(CHANGED)
    return program.path


@contextmanager
def unwritable(program: ShownProgram) -> Iterator[None]:
    """Let nobody open the held file for writing meanwhile, where the system can do that.

    It can for files of our own, which are those our other programs can write to. A text that runs
    as a copy needs no such care.
    """
    held = None if program.is_fixed else program.held
    leased = held is not None and held.copy is None and sealed.lease(held.file)
    try:
        yield
    finally:
        if held is not None and leased:
            sealed.end_lease(held.file)


def executable(program: ShownProgram, spare: int) -> tuple[str, int | None]:
    """What to execute for a confirmed program, and the descriptor it needs as number `spare`.

    A binary is executed by its held descriptor. An interpreter opens its text once more by name:
    that is the path where the text is fixed, else the copy made at the question.
    """
    path, held = confirm(program), program.held
    if held is None:
        return path, None
    if program.is_binary:
        return f"/proc/self/fd/{held.file}", None
    if program.is_fixed:
        return path, None
    if program.real is not None and is_fixed(program.real):
        return program.real, None
    return f"/proc/self/fd/{spare}", held.file if held.copy is None else held.copy


def _candidates(word: str, search: str) -> Iterable[str]:
    if "/" in word:
        return [word if word.startswith("/") else f"/{word}"]
    return [f"{directory}/{word}" for directory in search.split(":") if directory and word]


def _program(word: str, path: str, as_root: bool) -> ShownProgram:
    # The file behind this descriptor is the one everything below is about, whatever the path does.
    place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        identity = _identity(os.fstat(place))
        here = f"/proc/self/fd/{place}"
        if not as_root and not os.access(here, os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        weak = _weaknesses(path)
        try:
            file = os.open(here, os.O_RDONLY | _QUIETLY)
        except PermissionError:
            # It may be run but not read, so it is a binary; the place is enough to execute it.
            return ShownProgram(
                word, path, _real(path), identity, weaknesses=weak, held=Held(os.dup(place))
            )
        binary = os.pread(file, len(_ELF), 0) == _ELF
        fixed = is_fixed(path)
        return ShownProgram(
            word,
            path,
            _real(path),
            identity,
            weaknesses=weak,
            is_binary=binary,
            is_fixed=fixed,
            interpreters=() if binary else tuple(_weak_interpreters(file)),
            held=Held(file) if fixed else _held(file, identity.size, binary),
        )
    finally:
        os.close(place)


def _weak_interpreters(text: int) -> Iterator[Weakness]:
    """What can still change of the programs that the first line of a text names.

    The system opens them by name when the text is started, so they cannot be held like the text.
    """
    first = os.pread(text, _FIRST_LINE, 0).partition(b"\n")[0]
    if not first.startswith(b"#!"):
        return
    words = os.fsdecode(first[2:]).split()
    if words and os.path.basename(words[0]) == "env":  # noqa: PTH119  (plain text)
        # The first word that is neither an option nor a variable is looked up by env.
        named = (word for word in words[1:] if not word.startswith("-") and "=" not in word)
        words[1:] = list(named)[:1]
    else:
        words[1:] = []
    for word in words:
        for path in _candidates(word, CHILD_PATH):
            if os.access(path, os.F_OK):
                yield from (Weakness(path, weak.who) for weak in _weaknesses(path)[-1:])
                break


def _held(file: int, size: int, binary: bool) -> Held:
    """A file that may change, with what is needed to know its bytes again."""
    try:
        if size > sealed.MAX_BYTES:
            return Held(file)
        if binary:
            return Held(file, digest=sealed.digest(file))
        copy = sealed.copy(file)
        return Held(file, copy, sealed.digest(copy))
    except OSError:
        return Held(file)


def _weaknesses(path: str) -> tuple[Weakness, ...]:
    try:
        return tuple(weaknesses(path))
    except OSError:
        return ()


def _identity(found: os.stat_result) -> Identity:
    if not stat.S_ISREG(found.st_mode) or not found.st_mode & 0o111:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    return Identity(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def _real(path: str) -> str | None:
    try:
        return os.path.realpath(path, strict=True)
    except OSError:
        return None

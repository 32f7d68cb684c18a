"""The sudo that runs privileged commands: one that only root can have changed, or none at all."""

import os
import re
import sys
from collections.abc import Mapping
from typing import Final

from stringd.gate.errors import TroubleError
from stringd.gate.processes import ALL_SIGNALS, GRACE_SECONDS, QUIET, Child, leave_to_end
from stringd.gate.program import ShownProgram
from stringd.gate.resolve import CHANGED, CHILD_PATH, resolve
from stringd.gate.trust import is_roots_alone, weaknesses

_PLACES: Final = f"{CHILD_PATH}:/run/wrappers/bin"
_PYTHONS: Final = (
    "/usr/bin/python3",
    "/usr/local/bin/python3",
    "/run/current-system/sw/bin/python3",
)
_LINES: Final = 20
# What sudo says in front of its reasons; the other two are the ends of its rules.
_REFUSAL: Final = re.compile(
    r"sudo: |Sorry, user \S+ is not allowed|\S+ is not in the sudoers file"
)
CHANGED_CODE: Final = 126
CHANGED_TEXT: Final = f"stringd gate: {CHANGED}"


def find_sudo(env: Mapping[str, str]) -> ShownProgram:
    """A sudo in root's hands; the directories of the system come before those of our own PATH.

    Raises `TroubleError`: a sudo that others could have put there would get the password.
    """
    refused: str | None = None
    for place in f"{_PLACES}:{env.get('PATH', '')}".split(":"):
        program = resolve("sudo", place)
        if program.path is None:
            continue
        if is_roots_alone(program.path):
            return program
        weak = weaknesses(program.path)[-1]
        refused = refused or f"{program.path} is not used: {weak.who} can change {weak.path}"
    why = refused or "sudo was not found"
    raise TroubleError(f"{why}. Privileged commands need a sudo that only root can change")


def sudo_words(sudo: str, assignments: Mapping[str, str], command: list[str]) -> list[str]:
    """The words of one sudo call: assignments the request asked for, `--`, then the command."""
    return [sudo, *(f"{name}={value}" for name, value in assignments.items()), "--", *command]


def refused_by_sudo(code: int, stderr: bytes) -> str | None:
    """The line in which sudo seems to say that it ran nothing: no password, or no such right.

    A command can print the same; `would_run` tells them apart.
    """
    lines = stderr.decode("utf-8", "replace").splitlines() if code == 1 else []
    return next((line for line in lines[:_LINES] if _REFUSAL.match(line)), None)


def would_run(sudo: str, command: list[str], env: Mapping[str, str]) -> bool:
    """Whether sudo lets the command run now without asking, as it does after a password."""
    words = ["sudo", "-n", "-l", "--", *command]
    try:
        pid = os.posix_spawn(
            sudo, words, env, file_actions=QUIET, setsigmask=[], setsigdef=ALL_SIGNALS
        )
    except OSError:
        return False
    child = Child(pid)
    if child.ends_within(GRACE_SECONDS):
        return child.reap() == 0
    leave_to_end(child)
    return False


def checked_words(program: ShownProgram, words: list[str]) -> list[str]:
    """The command as root, by way of a check that root makes itself.

    sudo closes every descriptor but 0, 1 and 2 and asks for a password first, so neither a held
    file nor a look at it from here reaches as far as the moment in which root executes it. A few
    lines of Python, run as root by an interpreter that only root can change, do.
    Raises `TroubleError` without such an interpreter.
    """
    if program.identity is None or program.held is None or program.real is None:
        raise TroubleError(f"{program.path} cannot be checked before root runs it")
    wanted = ":".join(map(str, program.identity))
    kind = "binary" if program.is_binary else "text"
    check = [_python(program), "-I", "-S", "-c", _CHECK]
    return [*check, program.real, wanted, program.held.digest or "-", kind, *words]


def _python(program: ShownProgram) -> str:
    for candidate in (os.path.realpath(sys.executable), *_PYTHONS):
        if is_roots_alone(candidate) and os.access(candidate, os.X_OK):
            return candidate
    raise TroubleError(
        f"others than root can change {program.path}, and there is no Python in root's hands "
        "to check it: install it where only root can write"
    )


# Runs as root with nothing but its arguments to go by. A binary is executed by the descriptor that
# was checked, while nobody may write to it; a text as a sealed copy, which no one can change.
_CHECK: Final = f"""
import fcntl, hashlib, os, signal, sys
real, wanted, digest, kind, *words = sys.argv[1:]
def changed():
    sys.stderr.write({CHANGED_TEXT!r} + "\\n")
    sys.stderr.flush()
    os._exit({CHANGED_CODE})
try:
    file = os.open(real, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    try:
        fcntl.fcntl(file, 10, signal.SIGURG)
        fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    except OSError:
        pass
    found = os.fstat(file)
    times = found.st_mtime_ns, found.st_ctime_ns
    if ":".join(map(str, (found.st_dev, found.st_ino, found.st_size, *times))) != wanted:
        changed()
    copy = -1
    if kind == "text":
        try:
            copy = os.memfd_create("stringd-gate", 2 | 16)
        except OSError:
            copy = os.memfd_create("stringd-gate", 2)
    whole = hashlib.sha256()
    while piece := os.read(file, 1 << 20):
        whole.update(piece)
        if kind == "text":
            os.write(copy, piece)
    if digest not in ("-", whole.hexdigest()):
        changed()
    if kind == "text":
        fcntl.fcntl(copy, fcntl.F_ADD_SEALS, 15)
        os.dup2(copy, 3)
except OSError:
    changed()
signal.signal(signal.SIGPIPE, signal.SIG_DFL)
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
try:
    os.execve(file if kind == "binary" else "/proc/self/fd/3", words, os.environ)
except OSError as error:
    sys.stderr.write(f"{{words[0]}}: {{error.strerror}}\\n")
    os._exit(126)
"""

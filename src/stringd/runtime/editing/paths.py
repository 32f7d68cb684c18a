"""Where files may be: the one door through which a typed path becomes a path we open.

File commands reach the user's home, the paths its owner allowed and, for one request, the
directory its client vouched for. The daemon's own data and stored variables are never reachable.
Symbolic links are resolved before the decision. This guards against a model's mistakes; it is
not a sandbox.
"""

import errno
import os
import re
import shlex
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import unquote, urlsplit

from stringd.runtime.errors import CommandError
from stringd.runtime.variables.scopes import holds_variables
from stringd.system.trust import trust_file

if TYPE_CHECKING:
    from stringd.runtime.topics.call import Call


RECORD_FILE: Final = "packages/.installed.json"
"""In a home: what was installed there. It decides what may be run, so no file command writes it."""
SAVED_FILE: Final = "packages/.saved.json"
"""In a home: which of its files an answer put there. It decides too."""
_SHORT: Final = 255
"""No file system is known that would not take names, or paths, of this many bytes."""
_WEB_ADDRESS: Final = re.compile(r"(?:https?|chanflow)://", re.IGNORECASE)


class FilePath(NamedTuple):
    """A path that passed the door. Names are shown from `path`; files are opened at `real`."""

    typed: str
    path: Path
    real: Path
    hint: str | None = None
    """Where a name that is not here was probably meant."""


def locate(call: "Call", typed: str, base: Path | None = None) -> FilePath:
    """Resolve what was typed and check that it may be reached.

    Relative names start at `base`, by default where the topic is. Raises `CommandError`
    with `FILE_NOT_ALLOWED` or `INVALID_PATH`.
    """
    if _WEB_ADDRESS.match(typed):
        raise CommandError(
            "INVALID_TARGET", f"Not a file: {typed}\nRecovery: /open takes web addresses."
        )
    path = os.path.normpath(_absolute(call, typed, base))
    if "\0" in path:
        raise CommandError("INVALID_PATH", "A path cannot contain a NUL character.")
    _check_length(path)
    real = os.path.realpath(path)
    home = os.path.realpath(call.session.user.home)
    if _is_record(real, home) or _is_own_data(call, real, home):
        raise CommandError("FILE_NOT_ALLOWED", f"Path belongs to the daemon's own data: {typed}")
    if holds_variables(home, real):
        raise CommandError(
            "FILE_NOT_ALLOWED",
            f"Path holds stored variables: {typed}\nRecovery: /set lists and changes them.",
        )
    if not is_within(real, home) and not any(is_within(real, root) for root in _roots(call)):
        # A file is allowed through its directory, so that its neighbours come along.
        wanted = Path(real) if is_directory(Path(real)) else Path(real).parent
        raise CommandError(
            "FILE_NOT_ALLOWED",
            f"Path outside workspace: {typed}\n"
            f"Recovery: work inside the home directory, or ask the owner to run: "
            f"stringd allow {shlex.quote(str(wanted))}",
        )
    return FilePath(typed, Path(path), Path(real), _elsewhere(call, typed, path))


def locate_named(
    call: "Call", typed: str, base: Path | None = None, *, home_too: bool = True
) -> FilePath:
    """`locate` for a name somebody typed: a bare one that is not there, but is in the home or the
    caller's directory, is that file. Raises `CommandError`.

    Replies show names as they are in the home, so these have to work wherever the topic is.
    """
    file = locate(call, typed, base)
    if home_too and _is_bare(typed) and not is_there(file.real):
        at_home = f"{call.session.user.home}/{typed}"
        if file.path != Path(at_home) and is_there(Path(at_home)):
            return locate(call, at_home)._replace(typed=typed)
    if file.hint is None or call.cwd is None or _explicitly_relative(typed):
        return file
    return locate(call, f"{call.cwd}/{typed}")._replace(typed=typed)


def standing_directory(call: "Call") -> Path:
    """Where the topic is: the opened directory, the open document's, or home."""
    session = call.session
    return session.directory or session.document_directory() or Path(session.user.home)


def is_directory(path: Path) -> bool:
    """Whether a directory is there; what we may not look at is none."""
    return stat.S_ISDIR(_mode(path))


def is_file(path: Path) -> bool:
    """Whether a regular file is there that we may look at."""
    return stat.S_ISREG(_mode(path))


def is_there(path: Path) -> bool:
    """Whether anything is there that we may look at; a dangling link is nothing."""
    return _mode(path) != 0


def _mode(path: Path) -> int:
    """Type and mode of what is there, or 0. `Path.is_dir` and the like may raise instead."""
    try:
        return path.stat().st_mode
    except OSError:
        return 0


def _absolute(call: "Call", typed: str, base: Path | None) -> str:
    home = call.session.user.home
    if typed == "~" or typed.startswith("~/"):
        return f"{home}/{typed[2:]}"
    if typed.startswith("file://"):
        try:
            return unquote(urlsplit(typed).path)
        except ValueError as error:
            raise CommandError("INVALID_PATH", f"Not an address of a file: {typed}") from error
    if typed.startswith("/"):
        return typed
    if base is None and _starts_at_caller(call) and _explicitly_relative(typed):
        return f"{call.cwd}/{typed}"
    return f"{base or standing_directory(call)}/{typed}"


def _starts_at_caller(call: "Call") -> bool:
    """While nothing is open, `./` means the directory of the program that calls."""
    session = call.session
    return call.cwd is not None and session.location is None and session.directory is None


def _check_length(path: str) -> None:
    if len(path) <= _SHORT and path.isascii():
        return
    try:
        os.lstat(path)
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise CommandError("INVALID_PATH", "The path is longer than a path can be.") from error


def _elsewhere(call: "Call", typed: str, path: str) -> str | None:
    """A name that is not here but in the caller's directory was probably meant to start there."""
    if call.cwd is None or typed.startswith(("/", "~", "file://", "..")) or is_there(Path(path)):
        return None
    meant = Path(call.cwd) / typed
    if not is_there(meant):
        return None
    name = f"./{typed}" if _starts_at_caller(call) else str(meant)
    return f"It exists in {call.cwd}: use {name}"


def _is_bare(typed: str) -> bool:
    return not typed.startswith(("/", "~", "file://")) and not _explicitly_relative(typed)


def _explicitly_relative(typed: str) -> bool:
    return typed in (".", "..") or typed.startswith(("./", "../"))


def _is_record(real: str, home: str) -> bool:
    """Whether a file decides which others may do more; a link may lead to it."""
    return any(
        real.endswith(name.rpartition("/")[2]) and real == os.path.realpath(f"{home}/{name}")
        for name in (RECORD_FILE, SAVED_FILE)
    )


def _is_own_data(call: "Call", real: str, home: str) -> bool:
    """Whether a path is the daemon's. A home that was put inside its directory stays a home."""
    if real.endswith("/trust.json") and real == os.path.realpath(trust_file()):
        return True
    data = call.services.data_root
    nested = home != data and is_within(home, data)
    return is_within(real, data) and not (nested and is_within(real, home))


def _roots(call: "Call") -> Iterator[str]:
    """Where files may be besides the home."""
    for path in call.session.user.allowed_paths:
        yield os.path.realpath(path)
    if call.cwd:
        yield os.path.realpath(call.cwd)


def is_within(path: str, root: str) -> bool:
    """Whether a resolved path is a directory or is in it, component by component."""
    return path == root or path.startswith(root if root.endswith("/") else f"{root}/")

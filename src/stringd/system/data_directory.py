"""The daemon's data directory is one that this account made, where it made it.

A directory that came with a clone, an archive or another account could hold anything: servers to
start, strategies, users. So a directory is used only when it is new, or when the owner's own list
(`system.trust`) names it, or when a marker in it says that it was made here by this account and it
is not inside a repository. Directories of earlier versions are adopted once.
"""

import errno
import json
import os
import shlex
import stat
from contextlib import suppress
from pathlib import Path
from typing import Final

from stringd.system.files import make_private_directory, write_atomically
from stringd.system.trust import TrustError, TrustStore
from stringd.system.work_tree import repository_of

MARKER: Final = "made-here.json"
_MAX_MARKER: Final = 4096
_WRITTEN_SECONDS: Final = 60.0
_MAX_LOOKED_AT: Final = 2000


class ForeignDirectoryError(Exception):
    """The directory is not used; `str()` says why and what to do."""


def claim(path: Path, *, chosen: bool, trust: TrustStore | None = None) -> None:
    """Make a data directory, or make sure that it is ours. `chosen` is one the owner named.

    Raises `ForeignDirectoryError` or `OSError`.
    """
    trust = trust or TrustStore()
    try:
        status = path.stat()
    except FileNotFoundError:
        if path.is_symlink():
            raise ForeignDirectoryError(f"{path} is a link that leads nowhere") from None
        make_private_directory(path)
        _sign(path, trust)
        return
    if not stat.S_ISDIR(status.st_mode):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))
    why = _objection(path, status, trust, chosen=chosen)
    if why:
        raise ForeignDirectoryError(_explained(path, why))
    if stat.S_IMODE(status.st_mode) & 0o077:
        path.chmod(0o700)
    if os.access(path, os.W_OK):
        _sign(path, trust)


def why_not_used(path: Path, *, chosen: bool, trust: TrustStore | None = None) -> str | None:
    """Why a daemon would not use an existing directory; None when it would. Raises `OSError`."""
    return _objection(path, path.stat(), trust or TrustStore(), chosen=chosen)


def adopt(path: Path, trust: TrustStore) -> None:
    """Take a directory for ours on the owner's word. Raises `TrustError` or `OSError`."""
    status = path.stat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
        raise ForeignDirectoryError(f"{path} is not a directory of your account")
    trust.trust(path, _digest(status))
    path.chmod(0o700)
    _write_marker(path.resolve(), status)


def is_listed(path: Path, trust: TrustStore) -> bool:
    """Whether the owner's list names this very directory as a data directory."""
    try:
        return trust.state(path, _digest(path.stat())) == "trusted"
    except OSError:
        return False


def belongs_to_owner(path: Path) -> bool:
    """Whether what is in a data directory is the owner's own, not part of a clone around it."""
    return _is_at_home(path) or repository_of(path) is None


def _is_at_home(path: Path) -> bool:
    own, real = (os.path.realpath(each) for each in (Path("~/.string").expanduser(), path))
    return real == own or real.startswith(f"{own}/")


def _was_unpacked(path: Path) -> bool:
    """Whether a file says that it was written long before it came to be here.

    Archives come with the times of their files, and nobody can set when a file was last changed.
    """
    seen = 0
    for folder, _, names in os.walk(path):
        for name in names:
            status = os.lstat(os.path.join(folder, name))  # noqa: PTH118
            apart = abs(status.st_ctime - status.st_mtime)
            if stat.S_ISREG(status.st_mode) and apart > _WRITTEN_SECONDS:
                return True
            seen += 1
            if seen >= _MAX_LOOKED_AT:
                return False
    return False


def _objection(
    path: Path, status: os.stat_result, trust: TrustStore, *, chosen: bool
) -> str | None:
    if status.st_uid != os.geteuid():
        return "it belongs to another account"
    if not chosen and path.is_symlink():
        return "it is a link to another directory"
    if is_listed(path, trust):
        return None
    if not belongs_to_owner(path):
        return None if _is_empty(path) else f"it came with the repository {repository_of(path)}"
    marker = _marker(path)
    if marker is not None:
        same = marker == _marks(path.resolve(), status)
        return None if same else "it is a copy of one that was made elsewhere"
    if not _is_empty(path) and status.st_mode & stat.S_IWOTH:
        return "every account can write to it"
    if not _is_at_home(path) and _was_unpacked(path):
        return "its files were unpacked or copied here, not written here"
    # Earlier versions made theirs 0700; one the owner names by hand may have been made by hand.
    if not _is_empty(path) and not chosen and stat.S_IMODE(status.st_mode) & 0o077:
        return "your stringd did not make it"
    return None


def _explained(path: Path, why: str) -> str:
    shown = shlex.quote(str(path))
    return (
        f"data directory {path} is not used: {why}. If it is yours, say so: "
        f"stringd trust --data-dir {shown}. Else choose another: "
        "STRINGD_DATA_DIR=~/.string/daemon stringd serve"
    )


def _is_empty(path: Path) -> bool:
    with os.scandir(path) as entries:
        return next(entries, None) is None


def _sign(path: Path, trust: TrustStore) -> None:
    """Leave the marker, and add the directory to the owner's list where that can be written."""
    status = path.stat()
    if _marker(path) != _marks(path.resolve(), status):
        _write_marker(path.resolve(), status)
    if not is_listed(path, trust):
        # Without a list the marker still counts, except inside a repository.
        with suppress(TrustError):
            trust.trust(path, _digest(status))


def _digest(status: os.stat_result) -> str:
    return f"data-directory:{status.st_ino}"


def _marks(real: Path, status: os.stat_result) -> dict[str, object]:
    # Not the device: its number may differ after every start of the machine.
    return {"path": str(real), "uid": status.st_uid, "inode": status.st_ino}


def _write_marker(real: Path, status: os.stat_result) -> None:
    text = json.dumps(_marks(real, status)) + "\n"
    write_atomically(real / MARKER, text.encode(), 0o600)


def _marker(path: Path) -> object:
    """What the marker says; None without one."""
    try:
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        descriptor = os.open(path / MARKER, flags)
    except FileNotFoundError:
        return None
    except OSError:
        return "unreadable"
    try:
        return json.loads(os.read(descriptor, _MAX_MARKER))
    except (OSError, ValueError):
        return "unreadable"
    finally:
        os.close(descriptor)

"""Taking a package away: its files, its entry and its record, and all of it after a crash.

What is being removed is marked by `.<name>.gone` first; whoever finds the mark finishes it.
"""

import re
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from stringd.runtime.errors import CommandError
from stringd.runtime.packages import record
from stringd.runtime.packages.installed import Kind, unregister
from stringd.runtime.packages.kept_files import data_directory, put_aside
from stringd.runtime.settings import PACKAGES
from stringd.runtime.topics.location import is_web
from stringd.system.files import write_atomically

_MARK: Final = ".gone"
_NAME: Final = re.compile(r"[A-Za-z0-9_-]+")


class Removal(NamedTuple):
    """A package that is gone; `kept` is where files are that its actions had made."""

    kind: Kind
    uri: str
    kept: Path | None = None


def is_package_name(name: str) -> bool:
    """Whether an installed package can have this name: one that leads nowhere else."""
    return _NAME.fullmatch(name) is not None


def take_away(home: str, name: str) -> Removal | None:
    """Remove a package, while the packages are held; None when it had no entry.

    Raises `OSError`: when what its actions made cannot be kept, nothing has happened; else the
    rest is done with the next look. Raises `CommandError` when the list of apps is damaged.
    """
    mark = Path(home) / PACKAGES / f".{name}{_MARK}"
    # Its files say where it came from, and they are about to go.
    source = record.last_source(home, name)
    if is_package_name(name):
        write_atomically(mark, msgspec.json.encode(source), 0o600)
    try:
        kept = _clear(home, name)
    except OSError:
        mark.unlink(missing_ok=True)
        raise
    removed = _forget(home, name, source, kept)
    mark.unlink(missing_ok=True)
    return removed


def finish_removals(home: str) -> None:
    """Remove what a crash left half removed, while the packages are held."""
    for mark in (Path(home) / PACKAGES).glob(f".*{_MARK}"):
        name = mark.name[1 : -len(_MARK)]
        # What cannot be finished now is tried again with the next look.
        with suppress(OSError, CommandError):
            if is_package_name(name):
                source = _source(mark)
                _forget(home, name, source, _clear(home, name))
                mark.unlink()


def _clear(home: str, name: str) -> Path | None:
    directory = Path(home) / PACKAGES / name
    return put_aside(directory, record.files_of(home, name), data_directory(home, name))


def _forget(home: str, name: str, source: str | None, kept: Path | None) -> Removal | None:
    entry = unregister(home, name)
    link = entry[1] if entry is not None and is_web(entry[1]) else None
    record.strike(home, name, source or link)
    return None if entry is None else Removal(*entry, kept)


def _source(mark: Path) -> str | None:
    try:
        return msgspec.json.decode(mark.read_bytes(), type=str | None)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None

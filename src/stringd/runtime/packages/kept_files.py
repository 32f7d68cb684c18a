"""What actions made in a package's directory: it outlives another installation and the package.

A file counts as made unless it is exactly what was installed.
"""

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from stringd.runtime.packages.record import MAX_FILE_BYTES, digest_of
from stringd.runtime.settings import WORK_DIRECTORY
from stringd.system.files import make_private_directory
from stringd.system.safe_open import read_file


class KeptFiles(NamedTuple):
    """What became of the files that actions made."""

    carried: int = 0
    """So many are where they were."""
    aside: Path | None = None
    """Where those are that had to make room."""


def carry_over(old: Path, new: Path, known: Mapping[str, str], data: Path) -> KeptFiles:
    """Move what was made in `old` to the same place in `new`, or aside where that is taken.

    `known` are the installed files with their digests. `old` is gone afterwards. Raises `OSError`.
    """
    carried, aside = 0, None
    for relative in made_files(old, known):
        source, target = old / relative, new / relative
        if _same(source, target):
            continue
        if not os.path.lexists(target) and _has_room(new, target):
            target.parent.mkdir(parents=True, exist_ok=True)
            source.rename(target)
            carried += 1
        else:
            aside = aside or _aside(data)
            _move(source, aside / relative)
    _clear(old, known)
    return KeptFiles(carried, aside)


def put_aside(old: Path, known: Mapping[str, str], data: Path) -> Path | None:
    """Move what was made in `old` to an app's data and remove the rest; where it is now.

    Raises `OSError`.
    """
    aside = None
    for relative in made_files(old, known):
        aside = aside or _aside(data)
        _move(old / relative, aside / relative)
    _clear(old, known)
    return aside


def data_directory(home: str, name: str) -> Path:
    """Where an app keeps its data."""
    return Path(home) / WORK_DIRECTORY / name


def made_files(directory: Path, known: Mapping[str, str]) -> list[str]:
    """The files of a package, by relative path, that are not as they were installed."""
    return [
        relative
        for relative, path in _files(directory)
        if known.get(relative) is None or known[relative] != _digest(path)
    ]


def _files(directory: Path) -> Iterator[tuple[str, Path]]:
    """Everything that is not a directory, links among it; compiled Python can be made again."""
    for parent, folders, names in os.walk(directory):
        here = Path(parent)
        links = [name for name in folders if (here / name).is_symlink()]
        for name in (*links, *names):
            if here.name != "__pycache__" or not name.endswith(".pyc"):
                path = here / name
                yield str(path.relative_to(directory)), path


def _digest(path: Path) -> str:
    try:
        return digest_of(read_file(path, MAX_FILE_BYTES).data)
    except OSError:
        # A link, a pipe, or too large to have been installed.
        return ""


def _same(source: Path, target: Path) -> bool:
    digest = _digest(target) if os.path.lexists(target) else ""
    return bool(digest) and digest == _digest(source)


def _has_room(root: Path, target: Path) -> bool:
    """Whether every directory on the way is one, or can be made."""
    inner = [each for each in target.parents if each != root and each.is_relative_to(root)]
    return all(not os.path.lexists(each) or _is_real_directory(each) for each in inner)


def _is_real_directory(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _aside(data: Path) -> Path:
    """A directory of its own for what is put aside now."""
    make_private_directory(data)
    stem = f"kept-{datetime.now(UTC):%Y%m%d-%H%M%S}"
    names = (f"{stem}-{number}" if number else stem for number in range(1000))
    path = next(data / name for name in names if not os.path.lexists(data / name))
    path.mkdir(mode=0o700)
    return path


def _move(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    # The data may be on another disk.
    shutil.move(source, target)


def _clear(directory: Path, known: Mapping[str, str]) -> None:
    """Remove what is left; what somebody makes at this moment stays."""
    if not made_files(directory, known):
        shutil.rmtree(directory, ignore_errors=True)
        return
    for relative in known:
        with suppress(OSError):
            (directory / relative).unlink()

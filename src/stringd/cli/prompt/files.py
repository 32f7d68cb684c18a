"""Files whose paths begin with what was typed."""

import os
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Final

MOST: Final = 200
"""So many names of a directory are offered at most."""


def files(typed: str, directories: Iterable[str]) -> list[str]:
    """Paths that continue the typed one, in the directories it may be relative to."""
    folder, _, name = typed.rpartition("/")
    folder += "/" if folder or typed.startswith("/") else ""
    if folder.startswith(("/", "~")):
        bases = ["/"]
    else:
        bases = [each for each in dict.fromkeys(directories) if each]
    if folder.startswith(("./", "../")):
        # Only the caller's own directory is meant, which comes first.
        bases = bases[:1]
    found: dict[str, None] = {}
    for base in bases:
        place = Path(base, Path(folder).expanduser())
        found |= dict.fromkeys(f"{folder}{each}" for each in islice(_names(place, name), MOST))
    return sorted(found)


def _names(place: Path, beginning: str) -> Iterator[str]:
    try:
        with os.scandir(place) as entries:
            for entry in entries:
                hidden = entry.name.startswith(".") and not beginning.startswith(".")
                if entry.name.startswith(beginning) and not hidden and entry.name.isprintable():
                    yield f"{entry.name}/" if entry.is_dir() else entry.name
    except OSError:
        return

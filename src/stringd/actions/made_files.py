"""Which files a command of an app left where it ran, so that its reply can say where they are."""

import os
from pathlib import Path
from typing import Final

MAX_ENTRIES: Final = 2000
"""A directory with more is not looked through."""
NAMES_SHOWN: Final = 5


def entries(directory: Path) -> frozenset[str] | None:
    """What is in a directory now; None when it cannot be told."""
    found: set[str] = set()
    try:
        with os.scandir(directory) as listed:
            for each in listed:
                found.add(each.name)
                if len(found) > MAX_ENTRIES:
                    return None
    except OSError:
        return None
    return frozenset(found)


def made_note(directory: Path, before: frozenset[str] | None, text: str) -> str:
    """Lines that name what appeared since `before` and `text` does not say; empty if nothing."""
    after = entries(directory)
    if before is None or after is None or after == before:
        return ""
    new = sorted(name for name in after - before if name[0] != "." and name.isprintable())
    paths = [path for name in new if (path := str(directory / name)) not in text]
    lines = [f"Saved: {path}" for path in paths[:NAMES_SHOWN]]
    more = len(paths) - NAMES_SHOWN
    return "\n".join([*lines, f"and {more} more in {directory}"] if more > 0 else lines)

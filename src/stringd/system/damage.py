"""Files that cannot be read: kept aside under a name of their own, and listed."""

import logging
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

log = logging.getLogger("stringd.damage")

SUFFIX: Final = ".unreadable"


def put_aside(path: Path, also: Sequence[str] = ()) -> Path:
    """Rename a file that cannot be read; what was kept aside before stays. Returns its new name.

    `also` names the endings of files that belong to it and go with it. Raises `OSError`.
    """
    kept = path.with_name(path.name + SUFFIX)
    number = 1
    while kept.exists():
        number += 1
        kept = path.with_name(f"{path.name}{SUFFIX}.{number}")
    path.replace(kept)
    for ending in also:
        beside = path.with_name(path.name + ending)
        if beside.exists():
            beside.replace(kept.with_name(kept.name + ending))
    log.error("%s could not be read; it is kept as %s", path, kept)
    return kept


def kept_aside(directory: Path) -> Iterator[Path]:
    """What was put aside in a directory, oldest name first."""
    if directory.is_dir():
        yield from sorted(
            path
            for path in directory.glob(f"*{SUFFIX}*")
            if not path.name.endswith(("-wal", "-shm"))
        )

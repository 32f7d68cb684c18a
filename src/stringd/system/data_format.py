"""How a data directory is written: a number that grows when earlier versions cannot read it.

Directories without a number have the first format. A version that meets a higher number than its
own touches nothing; one that meets a lower number makes a backup, then changes one step at a time.
"""

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple

from stringd.system.files import write_atomically

FORMAT: Final = 1
"""What this version writes. Raise it together with a step in `STEPS`."""
FIRST: Final = 1
NAME: Final = "format.json"
_MAX_BYTES: Final = 4096

Step = Callable[[Path], None]
"""Changes a directory to the next format. A step that was interrupted is taken again."""
STEPS: Final[Mapping[int, Step]] = MappingProxyType({})
"""By the format that each starts from."""


class NewerDataError(Exception):
    """A later version wrote the directory; `str()` says which and what to do."""


class DataFormat(NamedTuple):
    """The format of a directory, and the version that wrote it last; empty before the first."""

    number: int
    version: str


def read_format(directory: Path) -> DataFormat:
    """What a directory says of itself. Raises `OSError`, or `ValueError` when it is unreadable."""
    try:
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        descriptor = os.open(directory / NAME, flags)
    except (FileNotFoundError, NotADirectoryError):
        return DataFormat(FIRST, "")
    try:
        held = json.loads(os.read(descriptor, _MAX_BYTES))
    finally:
        os.close(descriptor)
    number = held.get("format") if isinstance(held, dict) else None
    if type(number) is not int or number < FIRST:
        raise ValueError(f"{directory / NAME} names no format")
    return DataFormat(number, str(held.get("version", ""))[:40])


def refuse_newer(directory: Path, format_number: int = FORMAT) -> None:
    """Raise `NewerDataError` when a later version wrote the directory. Raises `OSError`."""
    try:
        found = read_format(directory)
    except ValueError:
        raise NewerDataError(
            f"{directory / NAME} cannot be read, so it is not known which version wrote "
            f"{directory}. Nothing was changed. Restore a backup with stringd restore, or, if no "
            "later version than this one was used there, delete that file."
        ) from None
    if found.number > format_number:
        by = f"stringd {found.version}" if found.version else "a later stringd"
        raise NewerDataError(
            f"{directory} was written by {by} (format {found.number}), and this version reads "
            f"format {format_number}. Nothing was changed. Install {by} again, restore a backup "
            "from before the update with stringd restore --replace, or choose another directory "
            "with STRINGD_DATA_DIR."
        )


def bring_up_to_date(
    directory: Path,
    version: str,
    back_up: Callable[[], None],
    *,
    steps: Mapping[int, Step] = STEPS,
    format_number: int = FORMAT,
) -> int:
    """Change a directory to our format, after a backup; how many steps that took.

    Raises `NewerDataError`, `OSError`, and what `back_up` and the steps raise: the directory has
    then the format of the last step that was completed.
    """
    refuse_newer(directory, format_number)
    found = read_format(directory)
    pending = range(found.number, format_number)
    if pending:
        back_up()
    for number in pending:
        steps[number](directory)
        _write(directory, DataFormat(number + 1, version))
    if not pending and found.version != version:
        _write(directory, DataFormat(format_number, version))
    return len(pending)


def _write(directory: Path, found: DataFormat) -> None:
    text = json.dumps({"format": found.number, "version": found.version}) + "\n"
    write_atomically(directory / NAME, text.encode(), 0o600)

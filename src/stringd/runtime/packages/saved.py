"""Files of a home whose text came from an answer, not from the home's user.

`<home>/packages/.saved.json` holds the digest of what was saved, by path. A file that has another
content by now was written by somebody else since.
"""

import os
from pathlib import Path
from typing import Final

from stringd.runtime.editing.paths import SAVED_FILE
from stringd.runtime.errors import CommandError
from stringd.runtime.packages.record import digest_of
from stringd.runtime.variables.json_file import changing, read_object

_known: Final[dict[str, tuple[tuple[int, ...], dict[str, object]]]] = {}
"""What was read before, with what shows that it is still the same."""


def keep_saved(home: str, real: str, data: bytes) -> None:
    """Write down that an answer is about to be saved. Raises `CommandError`."""
    with changing(Path(home) / SAVED_FILE) as content:
        for path in [each for each in content if not os.path.lexists(f"{home}/{each}")]:
            del content[path]
        content[real.removeprefix(f"{home}/")] = digest_of(data)


def is_saved(home: str, real: str, digest: str) -> bool:
    """Whether a file of the home still is what an answer put there, or may be."""
    known = _read(home)
    return known is None or known.get(real.removeprefix(f"{home}/")) == digest


def _read(home: str) -> dict[str, object] | None:
    """What was saved; None when that cannot be read."""
    path = Path(home) / SAVED_FILE
    try:
        status = path.stat()
        mark = status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
        known = _known.get(home)
        if known is None or known[0] != mark:
            known = _known[home] = (mark, read_object(path))
    except FileNotFoundError:
        return {}
    except (OSError, CommandError):
        return None
    return known[1]

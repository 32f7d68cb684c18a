"""The files and folders that a call names, and how much around each its command needs."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from stringd.system.sandbox import TEMPORARY

_LONGEST_PATH: Final = 4096
_FILE_URI: Final = "file://"
_MOST_PATHS: Final = 100
# A word of a command line that begins as a path does: by a slash, or by a home, a variable or dots
# before one.
_IN_TEXT: Final = re.compile(
    r"(?<![\w./~}:@%+-])(?P<start>~|\.{1,2}|\$\{?(?P<name>[A-Za-z_]\w*)\}?)?"
    r"(?P<rest>/[^\s'\"`|;&<>()$*?\[\]{}\\,]+)",
    re.ASCII,
)
# Programs and settings of the machine: naming one to run or read it does not mean to change it.
_OF_THE_MACHINE: Final = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc", "/boot", "/nix", "/snap"),
    *("/dev", "/proc", "/sys", "/run", "/var/run"),
)


def named_paths(values: Iterable[str], directory: Path, home: str) -> Iterator[Path]:
    """The paths among the values of a call, as a command that runs in `directory` takes them.

    `~/` is `home`. A relative path counts when something is there.
    """
    for value in values:
        text = value.removeprefix(_FILE_URI)
        if not text or len(text) > _LONGEST_PATH or "\n" in text or "\0" in text:
            continue
        if text.startswith("/"):
            yield Path(os.path.normpath(text))
        elif text.startswith("~/"):
            yield Path(os.path.normpath(f"{home}/{text[2:]}"))
        elif "/" in text or text in (".", ".."):
            path = Path(os.path.normpath(directory / text))
            if path.exists():
                yield path


def paths_in(command: str, variables: Mapping[str, str]) -> Iterator[str]:
    """The words of a command line that are paths, as far as its text shows; of many the first."""
    for found, _ in zip(_IN_TEXT.finditer(command), range(_MOST_PATHS), strict=False):
        name = found["name"]
        start = variables.get(name, "") if name else (found["start"] or "")
        yield f"{start}{found['rest']}"


def place_around(path: Path, homes: Iterable[str]) -> Path | None:
    """What has to be writable for a command to work on a path; None when nothing can be.

    A folder is itself. A file needs its folder too, because programs put journals and new versions
    beside it; not where that folder is a whole home or everybody's. What is to be made needs the
    nearest folder that is there.
    """
    real = Path(os.path.realpath(path))
    if any(real.is_relative_to(each) for each in _OF_THE_MACHINE):
        return None
    wide = {"/", *TEMPORARY, *map(os.path.realpath, homes)}
    if real.is_dir():
        return None if str(real) == "/" else real
    if real.exists():
        return real if str(real.parent) in wide else real.parent
    above = next((each for each in real.parents if each.is_dir()), Path("/"))
    return None if str(above) == "/" else above

"""What a program needs to see of the places a sandbox replaces by its own."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from stringd.system.sandbox.spec import TEMPORARY

INTERPRETER: Final = os.path.realpath(sys.executable)
"""Python for what we run inside. A virtual environment's would first look for its base."""


def named_in(command: Sequence[str]) -> tuple[Path, ...]:
    """The files a command line names in a temporary directory, with what is installed around them.

    A sandbox has a temporary directory of its own, in which they would be missing.
    """
    found: dict[Path, None] = {}
    for index, text in enumerate(command):
        path = Path(text)
        if path.is_absolute() and path.exists() and _is_temporary(path):
            # A program brings its environment along: PREFIX/bin/program.
            program = index == 0 and path.parent.name == "bin"
            around = path.parent.parent if program else path.parent
            found[path if os.fspath(around) in TEMPORARY else around] = None
    return tuple(found)


def _is_temporary(path: Path) -> bool:
    return any(os.fspath(parent) in TEMPORARY for parent in path.parents)


def on_path(path: str) -> tuple[Path, ...]:
    """The directories of a PATH that are in a temporary directory, with what belongs to them."""
    found = (Path(each) for each in path.split(os.pathsep) if each.startswith("/"))
    places = (each.parent if each.name == "bin" else each for each in found if each.is_dir())
    return tuple(dict.fromkeys(each for each in places if _is_temporary(each)))

"""From the text of a path to the place it really names."""

import os
from pathlib import Path
from typing import Final, NamedTuple

from stringd.runs.guard.errors import Denied

# What the system opens in one piece; a longer one could be made step by step, but never opened.
_MAX_BYTES: Final = 4095


class WorkspacePath(NamedTuple):
    """A real path, symlinks and `..` followed. `inside` is relative to the workspace, or None."""

    real: Path
    inside: str | None

    @property
    def shown(self) -> str:
        """How to name it to the model: relative when it is inside."""
        return self.inside if self.inside is not None else str(self.real)


class Workspace:
    """The folder a run works in."""

    def __init__(self, cwd: Path) -> None:
        self.cwd = cwd
        self.real = Path(os.path.realpath(cwd))

    def place(self, text: str) -> WorkspacePath:
        """Where a path leads, whether or not anything is there yet. Raises `Denied`."""
        if "\0" in text:
            raise Denied("A path cannot contain a NUL character")
        # Unlike Path.resolve, this never expands anything: a leading ~ is a plain name.
        try:
            real = os.path.realpath(self.real / text)
            settled, size = os.path.realpath(real) == real, len(os.fsencode(real))
        except (OSError, RecursionError, UnicodeError) as error:
            raise Denied(f"Cannot tell where {text!r} leads: {error}") from None
        if size > _MAX_BYTES:
            raise Denied(f"A path can have at most {_MAX_BYTES} bytes")
        # Behind a link to itself the rest of a path comes back unresolved, other links included.
        if not settled:
            raise Denied(f"{text} goes through symbolic links without end")
        place = Path(real)
        return WorkspacePath(place, self.relative(place))

    def relative(self, real: Path) -> str | None:
        """A real path as seen from the workspace, or None when it is outside."""
        try:
            return real.relative_to(self.real).as_posix()
        except ValueError:
            return None

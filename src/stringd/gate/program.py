"""Which file a command's first word stands for. Values only; `resolve` looks at the disk."""

from dataclasses import dataclass
from typing import NamedTuple


class Identity(NamedTuple):
    """What must still be true of a file when it is run: the same file, not written since."""

    device: int
    inode: int
    size: int
    changed_ns: int


@dataclass(frozen=True, slots=True)
class Program:
    """A resolved command name. `path` is what is shown and what is executed.

    `path` is None when nothing was found; `real` is None when symlinks could not be followed.
    """

    word: str
    path: str | None
    real: str | None = None
    identity: Identity | None = None
    errno: int = 0

    @property
    def is_as_written(self) -> bool:
        """The word is the file's own full path, so there is nothing to add to it."""
        return self.word == self.path == self.real

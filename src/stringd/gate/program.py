"""Which file a command's first word names. Values only; `resolve` looks at the disk."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from stringd.gate.trust import Weakness

if TYPE_CHECKING:
    from stringd.gate.hosts import HostEntry


class Identity(NamedTuple):
    """What must still be true of a file when it is run: the same file, not written since."""

    device: int
    inode: int
    size: int
    modified_ns: int
    changed_ns: int


@dataclass(frozen=True, slots=True)
class Held:
    """The open descriptors of a file from the question to its end.

    `file` is the file itself. `copy` has the bytes it had at the question and can no longer change;
    a text that an interpreter reads while it runs is held this way.
    """

    file: int
    copy: int | None = None
    digest: str | None = None


@dataclass(frozen=True, slots=True)
class ShownProgram:
    """A resolved command name. `path` is what is shown; what is executed is what is `held`.

    `path` is None when nothing was found; `real` is None when symlinks could not be followed.
    """

    word: str
    path: str | None
    real: str | None = None
    identity: Identity | None = None
    errno: int = 0
    # Who besides root can change what the path leads to.
    weaknesses: tuple[Weakness, ...] = ()
    is_binary: bool = True
    # Its path is as good as a descriptor: none of the programs that ask could change either.
    is_fixed: bool = False
    # Who besides root can change the programs that would run it, if it is a text.
    interpreters: tuple[Weakness, ...] = ()
    held: Held | None = None

    @property
    def is_as_written(self) -> bool:
        """The word is the file's own full path, so there is nothing to add to it."""
        return self.word == self.path == self.real


@dataclass(frozen=True, slots=True)
class Route:
    """The way to another machine: which one, and by which ssh."""

    host: "HostEntry"
    ssh: ShownProgram
    # What the person should know of the entry in the list of hosts.
    caution: str = ""

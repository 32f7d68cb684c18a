"""Where the content of a command's variables comes from."""

from collections.abc import Iterable, Mapping
from enum import Enum, auto
from typing import Final, NamedTuple

VALUE_PREFIX: Final = "STRING_VALUE_"
"""Begins the names of the variables that carry a call's values."""


class ValueOrigin(Enum):
    """Who decides what a variable holds."""

    CALLER = auto()
    """A hole, or `$ARGS`."""
    OWNER = auto()
    """A `$NAME` that was set; it may be several words or a program on purpose."""
    PLACE = auto()
    """A `$NAME` such as `$CURRENT_FILE`, which names a file or a topic."""


class Source(NamedTuple):
    """One variable of a composed command."""

    written: str
    """As the author wrote it: `{x}`, `$ARGS`."""
    origin: ValueOrigin
    options: bool = False
    """Whether it may begin with `-`."""
    code: bool = False
    """Whether the author says that it is meant to be code of another interpreter."""


Sources = Mapping[str, Source]
"""Name of the variable → what it holds."""
Carried = frozenset[str]
"""Names of the sources whose content something may hold."""
NOTHING: Final[Carried] = frozenset()


def of_callers(carried: Iterable[str], sources: Sources) -> Carried:
    """Those that a caller decides."""
    return frozenset(name for name in carried if sources[name].origin is ValueOrigin.CALLER)

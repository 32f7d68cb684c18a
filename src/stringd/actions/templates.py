"""Author text with holes: `{field}`, `{field[N]}`, `{field|mod}`, `{...args}` and `$NAME`.

A template is cut once, before any value is known. What is put into a hole is never looked at
again, so no value can add a hole of its own.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from stringd.actions.place import ActionContext, ListValue, Value, text_of

_HOLE: Final = re.compile(
    r"\{\.\.\.args\}|\{([A-Za-z_]\w*)(?:\[(\d{1,9})\])?((?:\|[A-Za-z]\w*)*)\}|\$([A-Za-z_]\w*)",
    re.ASCII,
)
PLACEHOLDER: Final = re.compile(r"\{([A-Za-z_]\w*)\}", re.ASCII)
ALL_ARGUMENTS: Final = "..."


class Hole(NamedTuple):
    """A placeholder for a caller's value."""

    raw: str
    name: str
    position: int | None = None
    modifiers: tuple[str, ...] = ()


class Variable(NamedTuple):
    """A `$NAME`."""

    raw: str
    name: str

    @property
    def must_resolve(self) -> bool:
        """An upper-case name is meant as a variable; `$filter` may be part of a URL."""
        return self.name.isupper()


Piece = str | Hole | Variable


def hole_at(text: str, position: int) -> Hole | Variable | None:
    """The hole that begins exactly here."""
    match = _HOLE.match(text, position)
    return _hole(match) if match else None


def cut(text: str) -> Iterator[Piece]:
    """A template in pieces, in order."""
    position = 0
    for match in _HOLE.finditer(text):
        if match.start() > position:
            yield text[position : match.start()]
        yield _hole(match)
        position = match.end()
    if position < len(text):
        yield text[position:]


def _hole(match: re.Match[str]) -> Hole | Variable:
    name, index, modifiers, variable = match.groups()
    if variable:
        return Variable(match[0], variable)
    if name is None:
        return Hole(match[0], ALL_ARGUMENTS)
    found = tuple(modifiers.split("|")[1:]) if modifiers else ()
    return Hole(match[0], name, int(index) if index else None, found)


@dataclass
class Inputs:
    """A call's values while templates use them up."""

    values: Mapping[str, Value]
    place: ActionContext
    used: set[str] = field(default_factory=set)
    """Fields some template took; they are not sent again."""

    def take(self, hole: Hole) -> str | None:
        """Text for a hole without modifiers: input, then session variables; None if neither."""
        if hole.name == ALL_ARGUMENTS:
            return " ".join(self.take_all())
        found = self.peek(hole)
        if found is not None:
            self.used.add(hole.name)
        return found

    def peek(self, hole: Hole) -> str | None:
        """Like `take`, without using the field up."""
        value = self.values.get(hole.name)
        if value is not None:
            return text_of(value, hole.position)
        return self.place.names.session.get(hole.name) if hole.position is None else None

    def items(self, hole: Hole) -> ListValue | None:
        """The items a hole stands for as a whole; None when it is one text."""
        value = self.values.get(hole.name)
        whole = hole.position is None and not hole.modifiers
        return value if whole and isinstance(value, ListValue) else None

    def take_all(self) -> list[str]:
        """`--name value` for every value nobody took yet, as separate words."""
        words: list[str] = []
        for name, value in self.remaining().items():
            words += [f"--{name}", value]
            self.used.add(name)
        return words

    def remaining(self) -> dict[str, str]:
        """The values nobody took, as text."""
        return {
            name: text_of(value) for name, value in self.values.items() if name not in self.used
        }

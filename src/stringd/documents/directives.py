"""Directives: `[!type:name](path)` alone on a line, outside fences and blocks. Never rendered."""

import re
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from stringd.documents.diagnostics import Finding

_OPENING = re.compile(r"\[!(nav|menu|include|requirements)(?::([A-Za-z0-9_-]++))?\]\(")
RESERVED_MENU: Final = "page"


class Directive(Struct, frozen=True, gc=False):
    """One directive line."""

    start: int
    end: int
    type: str
    """`nav` (also for `menu`), `include` or `requirements`."""
    name: str | None
    path: str
    written: str
    """The type as the author wrote it."""


class Include(Struct, frozen=True, gc=False):
    """`[!include:id](path)`: block `id` of `path`; an empty path means the sibling source file."""

    id: str
    path: str

    @property
    def file(self) -> str:
        return self.path.partition("#")[0]

    @property
    def block(self) -> str:
        """The block to take: the path's own fragment if it has one, else the directive's id."""
        return self.path.partition("#")[2] or self.id


def read_directive(line: str, indent: int, offset: int) -> Directive | None:
    """The directive a line is, if it is one and nothing else is on the line."""
    match = _OPENING.match(line, indent)
    if match is None:
        return None
    rest = line[match.end() :].removesuffix("\n").rstrip(" \t\r")
    if not rest.endswith(")"):
        return None
    path = rest[:-1].strip(" \t").removeprefix("<").removesuffix(">")
    kind = "nav" if match[1] == "menu" else match[1]
    return Directive(offset, offset + len(line), kind, match[2], path, match[1])


def directive_findings(found: list[Directive]) -> Iterator[Finding]:
    for each in found:
        if each.name is None and each.type != "requirements":
            text = f"[!{each.written}] requires an id — use [!{each.written}:name](path)"
            yield Finding(each.start, "MISSING_IDENTIFIER", text)
        elif each.type == "nav" and each.name == RESERVED_MENU:
            text = f'[!{each.written}:page] is not a menu: "page" names this page\'s own shortcuts'
            yield Finding(each.start, "RESERVED_NAME", text)

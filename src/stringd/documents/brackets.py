"""Everything written in brackets: directives, reference definitions and links, in one search.

The search jumps from one `]` to the next; only a line where `(`, `[` or `:` follows one is
looked at.
"""

import re
from typing import NamedTuple

from msgspec import Struct

from stringd.documents.directives import Directive, read_directive
from stringd.documents.links import Link, links
from stringd.documents.scan import Fences, line_end, line_start

_DEFINITION = re.compile(
    r"\[([^\[\]\n^][^\[\]\n]*)\]:[ \t]*(?:<([^<>\n]*)>|([^\s<][^\s]*))"
    r"""(?:[ \t]+(?:"[^"\n]*"|'[^'\n]*'|\([^()\n]*\)))?[ \t\r]*(?:\n|\Z)"""
)
_OTHER_DIRECTIVE = re.compile(r"\[![^\[\]\n]*\]\([^\n]*\)[ \t\r]*(?:\n|\Z)")


class Definition(Struct, frozen=True, gc=False):
    """A `[name]: url` line; shortcut definitions have a name that starts with `@`."""

    start: int
    end: int
    name: str
    target: str


class Bracketed(NamedTuple):
    """What a text holds in brackets outside fences, each kind in document order."""

    directives: list[Directive]
    definitions: list[Definition]
    links: list[Link]


def bracketed(source: str, fences: Fences, start: int) -> Bracketed:
    """Find everything in brackets, in time linear in the text."""
    found = Bracketed([], [], [])
    position = start
    hit = source.find("]", start)
    while hit >= 0:
        follower = source[hit + 1 : hit + 2]
        if follower != "(" and follower != "[" and follower != ":":
            hit = source.find("]", hit + 1)
            continue
        fence = fences.around(hit)
        if fence is None:
            first = line_start(source, hit, position)
            position = line_end(source, hit)
            _read_line(source, first, position, found)
        else:
            position = fence.end
        hit = source.find("]", position)
    return found


def _read_line(source: str, first: int, end: int, found: Bracketed) -> None:
    line = source[first:end]
    indent = len(line) - len(line.lstrip())
    if line[indent] != "[":
        found.links.extend(links(line, first))
        return
    if line.startswith("[!", indent):
        directive = read_directive(line, indent, first)
        if directive is not None:
            found.directives.append(directive)
            return
        if _OTHER_DIRECTIVE.match(line, indent):
            return
    elif (match := _DEFINITION.match(line, indent)) is not None:
        target = match[2] if match[2] is not None else match[3]
        found.definitions.append(Definition(first, end, match[1], target))
        return
    found.links.extend(links(line, first))

"""Everything written in brackets: directives, reference definitions and links, in one search.

The search jumps from one `]` to the next; only a line where `(`, `[` or `:` follows one is
looked at.
"""

import re
from typing import Final, NamedTuple

from msgspec import Struct

from stringd.documents.directives import Directive, read_directive
from stringd.documents.links import Link, links
from stringd.documents.scan import Fences, line_start

_DEFINITION = re.compile(
    r"\[([^\[\]\n^][^\[\]\n]*)\]:[ \t]*(?:<([^<>\n]*)>|([^\s<][^\s]*))"
    r"""(?:[ \t]+(?:"[^"\n]*"|'[^'\n]*'|\([^()\n]*\)))?[ \t\r]*(?:\n|\Z)"""
)
_FOLLOWERS: Final = frozenset("([:")
_BLANK_LINE = re.compile(r"\n[ \t\r]*\n")
LONGEST_LABEL: Final = 999
"""Characters above a line in which its label may begin; as long as CommonMark lets a label be."""
_OTHER_DIRECTIVE = re.compile(r"\[![^\[\]\n]*\]\([^\n]*\)[ \t\r]*(?:\n|\Z)")


class LinkDefinition(Struct, frozen=True, gc=False):
    """A `[name]: url` line; shortcut definitions have a name that starts with `@`."""

    start: int
    end: int
    name: str
    target: str


class Bracketed(NamedTuple):
    """What a text holds in brackets outside fences, each kind in document order."""

    directives: list[Directive]
    definitions: list[LinkDefinition]
    links: list[Link]


def bracketed(source: str, fences: Fences, start: int) -> Bracketed:
    """Find everything in brackets, in time linear in the text."""
    found = Bracketed([], [], [])
    add = found.links.extend
    fenced = bool(fences.all)
    position = start
    hit = source.find("]", start)
    while hit >= 0:
        if source[hit + 1 : hit + 2] not in _FOLLOWERS:
            hit = source.find("]", hit + 1)
            continue
        if fenced and (fence := fences.around(hit)) is not None:
            position = fence.end
        else:
            # A search in vain gives -1: the line then starts or ends where the text does.
            first = source.rfind("\n", position, hit) + 1 or position
            position = source.find("\n", hit) + 1 or len(source)
            line = source[first:position]
            if source.find("[", first, hit) < 0:
                add(_wrapped(source, fences, first, position))
            elif line[0] == "[" or line[0].isspace():
                _read_line(line, first, found)
            else:
                add(links(line, first))
        hit = source.find("]", position)
    return found


def _wrapped(source: str, fences: Fences, first: int, end: int) -> list[Link]:
    """The links of a line that closes a label before it opens one: it may begin further up."""
    opener = source.rfind("[", max(0, first - LONGEST_LABEL), first)
    label = source[opener:first]
    if opener < 0 or "]" in label or _BLANK_LINE.search(label) or fences.covers(opener):
        return links(source[first:end], first)
    above = line_start(source, opener)
    return [link for link in links(source[above:end], above) if link.start >= opener]


def _read_line(line: str, first: int, found: Bracketed) -> None:
    """Read a line that may be a directive or a definition: its first bracket opens it."""
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
        found.definitions.append(LinkDefinition(first, first + len(line), match[1], target))
        return
    found.links.extend(links(line, first))

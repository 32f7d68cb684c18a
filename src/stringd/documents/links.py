"""Links of a line or of several: `[label](target "title")`, `[label][name]`, outside code spans.

One pass with a stack of open brackets, as CommonMark does it: escaped brackets do not count, a link
takes the innermost bracket, images may be inside links but links not inside links.
"""

import re
from bisect import bisect_right

from msgspec import Struct


class Link(Struct, frozen=True, gc=False):
    """One link. Offsets count characters of the scanned text."""

    start: int
    """Offset of the `[`."""
    label_end: int
    """Offset of the `]` that ends the label."""
    end: int
    target: str | None
    """Destination of an inline link, without its title; None for `[label][name]`."""
    name: str | None
    """What is in the second brackets; None for an inline link."""
    image: bool


_TOKEN = re.compile(r"[\\`\[\]]")
_TICKS = re.compile("`+")
# Possessive throughout, one level of parentheses: a failed match never looks back, so a line of a
# million half-links stays linear.
_TARGET = re.compile(
    r"\(\s*+(?:<([^<>\n]*+)>|([^\s()<][^\s()]*+(?:\([^\s()]*+\)[^\s()]*+)*+|(?=[\s)])))"
    r"""(?:[ \t]++(?:"[^"\n]*+"|'[^'\n]*+'|\([^()\n]*+\)))?+[ \t]*+\)"""
)
_NAME = re.compile(r"\[([^\[\]\n]*+)\]")
_SIMPLE = re.compile(r"\[([^\[\]]*+)\]\(([^\s()<>\"']++)\)")


def links(line: str, offset: int = 0) -> list[Link]:
    """The links of a line, in the order they close; `offset` is where the line starts."""
    if "`" not in line and "\\" not in line and "][" not in line and "![" not in line:
        simple: list[Link] = []
        for match in _SIMPLE.finditer(line):
            first, last = match.span()
            close = offset + match.end(1)
            simple.append(Link(offset + first, close, offset + last, match[2], None, False))
        if len(simple) == line.count("]("):
            return simple
    return _scan(line, offset)


def one_line(label: str) -> str:
    """A label without the line breaks its paragraph gave it."""
    if "\n" not in label:
        return label.strip()
    return " ".join(part.strip() for part in label.split("\n"))


class _Spans:
    """Code spans of a line: a run of N backticks is closed by the next run of exactly N."""

    def __init__(self, line: str) -> None:
        self._runs: dict[int, list[int]] = {}
        self._lengths: dict[int, int] = {}
        for run in _TICKS.finditer(line):
            length = run.end() - run.start()
            self._runs.setdefault(length, []).append(run.start())
            self._lengths[run.start()] = length

    def after(self, tick: int) -> int:
        """Where reading continues after the run at `tick`: past the span, or past the lone run."""
        length = self._lengths[tick]
        same = self._runs[length]
        at = bisect_right(same, tick)
        return (same[at] if at < len(same) else tick) + length


def _scan(line: str, offset: int) -> list[Link]:
    found: list[Link] = []
    opened: list[int] = []
    dead = 0  # brackets below this height hold a link already and cannot become one
    spans: _Spans | None = None
    position = 0
    while (token := _TOKEN.search(line, position)) is not None:
        at = token.start()
        position = at + 1
        char = line[at]
        if char == "\\":
            position = at + 2
        elif char == "`":
            spans = spans or _Spans(line)
            # An escaped backtick splits a run; its remainder is literal.
            position = spans.after(at) if _starts_run(line, at) else at + 1
        elif char == "[":
            opened.append(at)
        elif opened:
            height = len(opened) - 1
            first = opened.pop()
            image = first > 0 and line[first - 1] == "!" and not _escaped(line, first - 1)
            link = _tail(line, first, at, image, offset)
            if link is not None and (image or height >= dead):
                found.append(link)
                position = link.end - offset
                dead = dead if image else height
            dead = min(dead, height)
    return found


def _starts_run(line: str, at: int) -> bool:
    return at == 0 or line[at - 1] != "`"


def _escaped(line: str, at: int) -> bool:
    backslashes = 0
    while at > backslashes and line[at - backslashes - 1] == "\\":
        backslashes += 1
    return backslashes % 2 == 1


def _tail(line: str, first: int, close: int, image: bool, offset: int) -> Link | None:
    """The link whose label is `line[first + 1:close]`, if a target or name follows."""
    match line[close + 1 : close + 2]:
        case "(":
            if (target := _TARGET.match(line, close + 1)) is not None:
                address = target[1] if target[1] is not None else target[2]
                start, end = offset + first, offset + target.end()
                return Link(start, offset + close, end, address, None, image)
        case "[":
            name = _NAME.match(line, close + 1)
            # `[a][b](c)` is the text `[a]` before the link `[b](c)`.
            if name is not None and line[name.end() : name.end() + 1] != "(":
                start, end = offset + first, offset + name.end()
                return Link(start, offset + close, end, None, name[1], image)
    return None

"""Where the code is: the fences of a text, found without walking its lines.

Everything else in a document is only looked for outside fences, so this comes first. The search
jumps from one run of three fence characters to the next with `str.find`; a text without fences
costs two such searches, and no byte is looked at twice.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

# Only the first of a row of carriage returns starts a match: a long row costs one pass.
_LINE_END: Final = re.compile("(?<!\r)\r++\n")


class Fence(Struct, frozen=True, gc=False):
    """One fenced code region. Offsets count characters of the source."""

    start: int
    """First character of the opening line."""
    end: int
    """Just past the closing line, its newline included; the end of the text if never closed."""
    body_start: int
    body_end: int
    indent: int
    info: str
    closed: bool


def line_end(text: str, position: int) -> int:
    """Offset just past the newline that ends the line at `position`."""
    found = text.find("\n", position)
    return len(text) if found < 0 else found + 1


def line_start(text: str, position: int, floor: int = 0) -> int:
    """Offset where the line at `position` starts, looking back no further than `floor`."""
    return max(text.rfind("\n", floor, position) + 1, floor)


def blank(text: str, start: int, end: int) -> bool:
    """Whether nothing but whitespace is between two offsets."""
    return start >= end or text[start:end].isspace()


def occurrences(text: str, needle: str, start: int = 0) -> Iterator[int]:
    """Offsets of `needle`, left to right, not overlapping."""
    probe = sparse(text, needle[0], needle)
    position = text.find(probe, start)
    while position >= 0:
        if probe is needle or text.startswith(needle, position):
            yield position
        position = text.find(probe, position + 1)


def sparse(text: str, char: str, needle: str) -> str:
    """What to search for: looking for one character is ten times faster, unless it is common."""
    return char if text.count(char) * 128 < len(text) else needle


def newline_of(text: str) -> str:
    """The newline a text uses: CRLF if most of its lines end so."""
    if "\r\n" not in text:
        return "\n"
    return "\r\n" if text.count("\r\n") * 2 >= text.count("\n") else "\n"


def with_newlines(text: str, newline: str) -> str:
    """The same lines, ended by `newline`; a second time changes nothing."""
    # Looking for one character costs a twentieth of looking for two.
    if "\r" not in text:
        return text if newline == "\n" else text.replace("\n", newline)
    # A line that was converted twice ends in two carriage returns; dropping one leaves CRLF.
    plain = _LINE_END.sub("\n", text) if "\r\r\n" in text else text.replace("\r\n", "\n")
    return plain if newline == "\n" else plain.replace("\n", newline)


class Fences:
    """The fenced regions of a text, in order, and whether an offset is inside one."""

    def __init__(self, text: str, start: int = 0) -> None:
        self.all: list[Fence] = list(_fences(text, start))
        self._starts = [fence.start for fence in self.all]

    def around(self, position: int) -> Fence | None:
        """The fence that covers an offset."""
        if not self.all:
            return None
        at = bisect_right(self._starts, position) - 1
        return self.all[at] if at >= 0 and position < self.all[at].end else None

    def covers(self, position: int) -> bool:
        """Whether an offset is inside a fence."""
        return bool(self.all) and self.around(position) is not None


def _fences(text: str, start: int) -> Iterator[Fence]:
    position = start
    # One character is found much faster than three, and most texts lack tildes or even backticks.
    ticks = text.find("```", start) if "`" in text else -1
    tildes = text.find("~~~", start) if "~" in text else -1
    while ticks >= 0 or tildes >= 0:
        hit = min(at for at in (ticks, tildes) if at >= 0)
        first = line_start(text, hit, position)
        fence = _open(text, first, hit) if blank(text, first, hit) else None
        if fence is None:
            position = line_end(text, hit)
        else:
            yield fence
            position = fence.end
        if 0 <= ticks < position:
            ticks = text.find("```", position)
        if 0 <= tildes < position:
            tildes = text.find("~~~", position)


def _open(text: str, first: int, hit: int) -> Fence | None:
    """The fence whose opening line starts at `first` with its run of characters at `hit`."""
    mark = text[hit]
    body = line_end(text, hit)
    line = text[hit:body]
    info = line.lstrip(mark)
    if mark == "`" and "`" in info:
        return None  # a code span, not a fence: CommonMark keeps backticks out of info strings
    run = mark * (len(line) - len(info))
    close, end = _close(text, body, run)
    indent = hit - first
    return Fence(first, end, body, close, indent, info.strip(), close < end)


def _close(text: str, body: int, run: str) -> tuple[int, int]:
    """Start and end of the closing line; twice the end of the text when there is none."""
    position = body
    while (hit := text.find(run, position)) >= 0:
        first = line_start(text, hit, position)
        end = line_end(text, hit)
        if blank(text, first, hit) and not text[hit:end].rstrip().strip(run[0]):
            return first, end
        position = end
    return len(text), len(text)

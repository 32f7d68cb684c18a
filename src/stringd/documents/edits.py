"""Edits: old text and a change in, new text out. What is not part of the change stays as it was.

New text is given the newlines the document uses. An edit that would damage the document raises
before anything is written.
"""

import re
from bisect import bisect_left
from typing import Final, NamedTuple

from stringd.documents.blocks import BlockSpan
from stringd.documents.document import Document, available_blocks
from stringd.documents.errors import (
    AmbiguousTextError,
    BlockBrokenError,
    BlockNotFoundError,
    LineRangeError,
    LineRangeOutOfBoundsError,
    ReplacementError,
    TextNotFoundError,
)
from stringd.documents.scan import newline_of, occurrences, with_newlines

_LINES = re.compile(r":L(\d{1,12})(?:-L?(\d{1,12}))?")
EXCERPTS: Final = 3
EXCERPT_WIDTH: Final = 40


class Target(NamedTuple):
    """What a command points at: `path`, `path#block`, `path:L5` or `path:L5-L10`.

    An empty path means the open document.
    """

    path: str
    block: str | None = None
    first: int | None = None
    last: int | None = None


class Replacement(NamedTuple):
    source: str
    matches: int


def parse_target(text: str) -> Target:
    """Read a target. A line range counts only at the end; a block starts at the first `#`.

    No block is named with a slash, so what is before one is part of a file's path: `C#/x.md`.
    """
    path, mark, block = text.partition("#")
    if path and "/" in block.partition(" ")[0] and path[0] != "@" and "://" not in path:
        folder, slash, name = text.rpartition("/")
        path, mark, block = name.partition("#")
        path = f"{folder}{slash}{path}"
    if mark:
        return Target(path, block)
    match = _LINES.search(text)
    while match is not None and match.end() != len(text):
        match = _LINES.search(text, match.end())
    if match is None:
        return Target(text)
    first = int(match[1])
    return Target(text[: match.start()], None, first, int(match[2]) if match[2] else first)


def block_text(source: str, ident: str) -> str:
    """The text of a block as `/edit` shows it: heading included, surrounding blanks trimmed."""
    span = Document(source).find_block(ident)
    if span is None:
        raise BlockNotFoundError(ident, available_blocks(Document(source)))
    return source[span.start : span.end].strip()


def replace_block(source: str, ident: str, text: str) -> str:
    """Replace what a block holds; its markers or heading stay.

    Raises BlockNotFoundError, or BlockBrokenError when the new text would damage the document.
    """
    span = Document(source).find_block(ident)
    if span is None:
        raise BlockNotFoundError(ident, available_blocks(Document(source)))
    newline = newline_of(source)
    new = with_newlines(text, newline)
    head = source[: span.body_start]
    if span.heading:
        new = _without_heading(new, source[span.start : span.body_start])
        head = head if head.endswith("\n") else head + newline
    old = source[span.body_start : span.end]
    body = _wrapped(old, new, newline, ends=bool(source[span.end :]))
    edited = head + body + source[span.end :]
    _check(edited, span, len(head) + len(body), ident)
    return edited


def _without_heading(new: str, heading: str) -> str:
    """Readers send back what they saw, heading included; it is there already."""
    first, newline, rest = new.partition("\n")
    return rest if newline and first.strip() == heading.strip() else new


def _wrapped(old: str, new: str, newline: str, *, ends: bool) -> str:
    """`new` between the blank lines that surrounded `old`."""
    core = old.strip("\r\n")
    lead = old[: old.index(core)] if core else ""
    trail = old[len(lead) + len(core) :]
    if new.endswith("\n"):
        trail = trail.removeprefix(newline)
    body = lead + new + trail
    return body + newline if ends and body and not body.endswith("\n") else body


def _check(edited: str, old: BlockSpan, end: int, ident: str) -> None:
    """The block must still be where it was, and what follows must still be outside code."""
    document = Document(edited)
    found = document.find_block(ident)
    if found is None or found.start != old.start or found.heading != old.heading:
        raise BlockBrokenError(ident)
    if not old.heading and found.end != end:
        raise BlockBrokenError(ident)
    if end < len(edited) and document.fences.covers(end):
        raise BlockBrokenError(ident)


def line_count(source: str) -> int:
    """Lines as editors of this protocol count them: pieces between line feeds."""
    return source.count("\n") + 1


def _line_span(source: str, first: int, last: int) -> tuple[int, int]:
    """Offsets of lines first…last, the newline of the last one left out."""
    if first < 1 or last < first:
        raise LineRangeError(first, last)
    start, line = 0, 1
    while line < first:
        start, line = _next_line(source, start, line, first, last), line + 1
    end = start
    while line < last:
        end, line = _next_line(source, end, line, first, last), line + 1
    stop = source.find("\n", end)
    return start, len(source) if stop < 0 else stop


def _next_line(source: str, position: int, line: int, first: int, last: int) -> int:
    found = source.find("\n", position)
    if found < 0:
        raise LineRangeOutOfBoundsError(first, last, line)
    return found + 1


def lines_text(source: str, first: int, last: int) -> str:
    """Lines first…last, counted from 1. Raises LineRangeError, LineRangeOutOfBoundsError."""
    start, end = _line_span(source, first, last)
    return source[start:end].removesuffix("\r")


def replace_lines(source: str, first: int, last: int, text: str) -> str:
    """Replace lines first…last by the lines of `text`; empty text removes them."""
    start, end = _line_span(source, first, last)
    newline = newline_of(source)
    if not text:
        after = end + 1 if end < len(source) else end
        return source[:start] + source[after:]
    new = with_newlines(text, newline).removesuffix(newline)
    if end < len(source) and source[end - 1 : end] == "\r" and end > start:
        end -= 1
    return source[:start] + new + source[end:]


def split_replacement(body: str) -> tuple[str, str]:
    """Old and new text of a `/replace` body: the first line that is `---` parts them."""
    lines = body.split("\n")
    at = next((number for number, line in enumerate(lines) if line.strip() == "---"), None)
    if at is None:
        raise ReplacementError(
            "Missing separator: put a line --- between the old and the new text."
        )
    old, new = "\n".join(lines[:at]), "\n".join(lines[at + 1 :]).removesuffix("\n")
    if lines[at].endswith("\r"):
        # What was sent has CRLF line ends; these two belong to lines that are not text.
        old, new = old.removesuffix("\r"), new.removesuffix("\r")
    if not old:
        raise ReplacementError("Old text cannot be empty.")
    return old, new


def replace_text(source: str, old: str, new: str, *, every: bool = False) -> Replacement:
    """Replace exact text, which must occur once unless `every`. Nothing in `new` is special."""
    if not old:
        raise ReplacementError("Old text cannot be empty.")
    # Whoever sent it saw lines, not how each of them ends.
    plain, wanted = source.replace("\r\n", "\n"), old.replace("\r\n", "\n")
    count = plain.count(wanted)
    if count == 0:
        raise TextNotFoundError
    if count > 1 and not every:
        raise AmbiguousTextError(count, _excerpts(plain, wanted))
    put = with_newlines(new, newline_of(source))
    return Replacement(put.join(_around(source, plain, wanted)), count)


def _around(source: str, plain: str, wanted: str) -> list[str]:
    """What of the source surrounds each `wanted` in `plain`, the same text with LF."""
    pieces = plain.split(wanted)
    if source == plain:
        return pieces
    shorter = [at - number for number, at in enumerate(occurrences(source, "\r\n"))]
    kept, end = [], 0
    for piece in pieces:
        start, end = end, end + len(piece)
        first, last = bisect_left(shorter, start), bisect_left(shorter, end)
        kept.append(source[start + first : end + last])
        end += len(wanted)
    return kept


def _excerpts(plain: str, wanted: str) -> tuple[str, ...]:
    shown: list[str] = []
    position = plain.find(wanted)
    while position >= 0 and len(shown) < EXCERPTS:
        start = max(0, position - EXCERPT_WIDTH // 2)
        shown.append(plain[start : start + EXCERPT_WIDTH].replace("\n", "\\n"))
        position = plain.find(wanted, position + len(wanted))
    return tuple(shown)


def append_text(source: str, text: str) -> str:
    """Add text at the end, on a line of its own, in the document's newline style."""
    newline = newline_of(source)
    gap = newline if source and not source.endswith("\n") else ""
    return source + gap + with_newlines(text, newline)

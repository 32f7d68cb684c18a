"""Blocks: named regions of a document, by comment markers or by headings.

`<!-- #id -->` … `<!-- /id -->` first, then a heading that carries `{#id}` or whose slug is the id.
Markers and headings inside code fences are text.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Final
from unicodedata import category, normalize

from msgspec import Struct

from stringd.documents.diagnostics import Finding
from stringd.documents.scan import Fences, blank, line_end, line_start, occurrences

_MARKER = re.compile(r"<!-- ([#/])([A-Za-z0-9_-]++) -->[ \t\r]*+(?:\n|\Z)")
_JUMPS: Final = 48
"""As many `<` one by one cost what one search through a page of 100 KB does."""
_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+(\S[^\n]*)")
_UNSLUGGED = re.compile(r"[^\w\s-]")
_LONGEST_COMPOSED: Final = 1000
_LONGEST_SLUGGED: Final = 10_000
_SPACES = re.compile(r"\s+")


class Marker(Struct, frozen=True, gc=False):
    """One marker line."""

    start: int
    end: int
    opens: bool
    id: str


class Heading(Struct, frozen=True, gc=False):
    """One ATX heading line."""

    start: int
    end: int
    level: int
    text: str


class BlockSpan(Struct, frozen=True, gc=False):
    """Where a block is. `source[start:end]` is what `/edit` and `/verify` show before trimming."""

    id: str
    start: int
    end: int
    body_start: int
    """Where replaceable text begins: below the open marker or the heading line."""
    heading: bool
    outer_start: int
    """The first character that belongs to the block, its open marker included."""
    outer_end: int
    """Where it ends, its close marker included; below a heading, where the next one begins."""

    @property
    def shown_end(self) -> int:
        """Where a reader's view ends: markers are not shown, so it may hold one of a pair."""
        return self.outer_end if self.heading else self.end


def slug(text: str) -> str:
    """The id a heading or label gets: lowercase, letters of any script, words joined by `-`."""
    lowered = text[:_LONGEST_SLUGGED].lower()
    if not lowered.isascii():
        # Composed, so that an id typed one way finds a heading typed the other.
        lowered = "".join(filter(_in_slug, composed(lowered)))
        return _SPACES.sub("-", lowered.strip())
    return _SPACES.sub("-", _UNSLUGGED.sub("", lowered).strip())


def composed(text: str) -> str:
    """Letters and their accents in one; long text stays, as a row of accents costs its square."""
    return text if len(text) > _LONGEST_COMPOSED else normalize("NFC", text)


def _in_slug(char: str) -> bool:
    """Letters and digits with their marks, which some scripts write vowels with."""
    return char.isalnum() or char.isspace() or char in "_-" or category(char)[0] == "M"


def markers(source: str, fences: Fences, start: int) -> list[Marker]:
    """Every marker line outside fences."""
    found: list[Marker] = []
    add, fenced = found.append, bool(fences.all)
    for match in _marker_matches(source, start):
        hit, end = match.span()
        first = hit
        # Nearly every marker starts its line; only an indented one needs a look back.
        if hit > start and source[hit - 1] != "\n":
            first = line_start(source, hit, start)
            if not blank(source, first, hit):
                continue
        if fenced and fences.covers(hit):
            continue
        mark, ident = match.groups()
        add(Marker(first, end, mark == "#", ident))
    return found


def _marker_matches(source: str, start: int) -> Iterable[re.Match[str]]:
    """What looks like a marker; where `<` is rare, found by jumping from one to the next."""
    found: list[re.Match[str]] = []
    position = start
    for _ in range(_JUMPS):
        position = source.find("<", position)
        if position < 0:
            return found
        match = _MARKER.match(source, position)
        position = match.end() if match else position + 1
        if match:
            found.append(match)
    return chain(found, _MARKER.finditer(source, position))


def marker_blocks(marks: Sequence[Marker]) -> dict[str, BlockSpan]:
    """Closed marker blocks by id: first open marker to the first close after it, in order."""
    opened: dict[str, Marker | None] = {}
    for mark in marks:
        if mark.opens:
            opened.setdefault(mark.id, None)
    closes: dict[str, BlockSpan] = {}
    waiting: dict[str, Marker] = {}
    for mark in marks:
        if mark.opens:
            if mark.id not in waiting and mark.id not in closes:
                waiting[mark.id] = mark
        elif mark.id in waiting:
            first = waiting.pop(mark.id)
            closes[mark.id] = BlockSpan(
                mark.id, first.end, mark.start, first.end, False, first.start, mark.end
            )
    return {ident: closes[ident] for ident in opened if ident in closes}


def marker_findings(marks: Sequence[Marker]) -> Iterator[Finding]:
    """What is wrong with the markers. Nesting is fine; crossing, repeating and dangling are not."""
    declared: set[str] = set()
    opened: dict[str, Marker] = {}
    for mark in marks:
        if mark.opens:
            if mark.id in declared:
                text = f"<!-- #{mark.id} --> already declared in this document"
                yield Finding(mark.start, "DUPLICATE_BLOCK_ID", text)
            declared.add(mark.id)
            opened.setdefault(mark.id, mark)
        elif not opened:
            text = f"<!-- /{mark.id} --> has no matching open marker"
            yield Finding(mark.start, "UNEXPECTED_BLOCK_CLOSE", text)
        else:
            innermost = next(reversed(opened))
            if innermost != mark.id:
                text = f"expected <!-- /{innermost} -->, got <!-- /{mark.id} -->"
                yield Finding(mark.start, "MISMATCHED_BLOCK", text)
                opened.pop(mark.id, None)
            else:
                opened.popitem()
    for ident, mark in opened.items():
        yield Finding(
            mark.start, "UNCLOSED_BLOCK", f"<!-- #{ident} --> has no closing <!-- /{ident} -->"
        )


def headings(source: str, fences: Fences, start: int) -> Iterator[Heading]:
    """ATX headings outside fences, in order."""
    starts = [start] if source.startswith(("#", " "), start) else []
    for indent in ("", " ", "  ", "   "):
        starts += [hit + 1 for hit in occurrences(source, f"\n{indent}#", start)]
    for first in sorted(starts):
        match = _HEADING.match(source, first)
        if match is not None and not fences.covers(first):
            end = line_end(source, match.end())
            yield Heading(first, end, len(match[1]), match[2].rstrip())


def named(heading: Heading, ident: str) -> bool:
    """Whether an address `#id` means this heading."""
    return f"{{#{ident}}}" in heading.text or slug(heading.text) == composed(ident)


def heading_block(
    source: str, ident: str, found: Iterator[Heading], blocks: Iterable[BlockSpan]
) -> BlockSpan | None:
    """The block of the first heading so called, down to the next of its level or above."""
    mine = next((heading for heading in found if named(heading, ident)), None)
    if mine is None:
        return None
    after = next((heading.start for heading in found if heading.level <= mine.level), len(source))
    end = _uncrossed(mine.end, after, list(blocks))
    return BlockSpan(ident, mine.start, end, mine.end, True, mine.start, after)


def _uncrossed(start: int, end: int, blocks: list[BlockSpan]) -> int:
    """The end moved up to the first marker whose partner is outside.

    Otherwise editing below a heading would delete one marker of a pair.
    """
    for block in blocks:
        if block.outer_start < start <= block.end < end:
            end = block.end
    for block in sorted(blocks, key=lambda each: each.outer_start, reverse=True):
        if start <= block.outer_start < end <= block.end:
            end = block.outer_start
    return end

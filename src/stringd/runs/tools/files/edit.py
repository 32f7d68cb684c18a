"""Where edits apply in a text. Pure: text and edits in, new text or a reason out.

Every edit is matched against the text as it was before any of them.
"""

import asyncio
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, pairwise
from typing import Annotated, Final, NamedTuple

import msgspec
from msgspec import Meta

from stringd.runs.tools.base import Arguments, BuiltInTool
from stringd.runs.tools.context import ToolContext
from stringd.runs.tools.files import disk, text
from stringd.runs.tools.files.changes import recorded
from stringd.runs.tools.files.write import FilePath, Sha256, changed, check_hash
from stringd.runs.tools.output import ToolFailure, ToolOutput

# Telling where every one of many matches is helps nobody.
_SHOWN_MATCHES: Final = 10


class Edit(NamedTuple):
    old: str
    new: str
    expected: int = 1


class TextSpan(NamedTuple):
    start: int
    end: int
    edit: int
    new: str


def apply(text: str, edits: Sequence[Edit], path: str) -> str:
    """The text with every edit made. Raises `ToolFailure`; then nothing was changed."""
    spans = sorted(
        TextSpan(start, end, index, edit.new)
        for index, edit in enumerate(edits)
        for start, end in _find(text, edit, index, path)
    )
    for first, second in pairwise(spans):
        if second.start < first.end:
            raise ToolFailure(
                "overlapping_edits",
                f"Edits {first.edit} and {second.edit} overlap in {path}",
                path=path,
                details={"edits": [first.edit, second.edit]},
                next_step="combine them into one edit",
            )
    parts, at = [], 0
    for span in spans:
        parts += [text[at : span.start], span.new]
        at = span.end
    return "".join([*parts, text[at:]])


def _find(text: str, edit: Edit, index: int, path: str) -> list[tuple[int, int]]:
    found = list(_exact(text, edit.old))
    if not found and edit.expected == 1:
        for fallback in _FALLBACKS:
            found = list(fallback(text, edit.old))
            if found:
                break
    if not found:
        raise ToolFailure(
            "old_text_not_found",
            f"Edit {index}: oldText is not in {path}",
            path=path,
            details={"edit": index},
            next_step="read the file again and copy the text exactly",
        )
    if len(found) != edit.expected:
        raise _wrong_count(text, edit, index, path, found)
    return found


def _wrong_count(
    text: str, edit: Edit, index: int, path: str, found: Sequence[tuple[int, int]]
) -> ToolFailure:
    ranges = [
        {"startLine": text.count("\n", 0, start) + 1, "endLine": text.count("\n", 0, end) + 1}
        for start, end in found[:_SHOWN_MATCHES]
    ]
    where = ", ".join(str(each["startLine"]) for each in ranges)
    return ToolFailure(
        "multiple_matches",
        f"Edit {index}: oldText is {len(found)} times in {path} (lines {where}), "
        f"expected {edit.expected}",
        path=path,
        details={"edit": index, "matches": len(found), "ranges": ranges},
        next_step="add surrounding lines to oldText, or set expectedOccurrences",
    )


def _exact(text: str, old: str) -> Iterator[tuple[int, int]]:
    at = text.find(old)
    while at >= 0:
        yield at, at + len(old)
        at = text.find(old, at + len(old))


def _lines(text: str) -> list[tuple[int, str]]:
    """Each line with the offset it begins at."""
    found, at = [], 0
    for line in text.split("\n"):
        found.append((at, line))
        at += len(line) + 1
    return found


def _trimmed(text: str, old: str) -> Iterator[tuple[int, int]]:
    """Whole lines that are the same but for blanks at their ends."""
    wanted = [line.strip() for line in old.strip("\n").split("\n")]
    lines = _lines(text)
    plain = [line.strip() for _, line in lines]
    if not any(wanted):
        return
    for first in range(len(lines) - len(wanted) + 1):
        if plain[first] == wanted[0] and plain[first : first + len(wanted)] == wanted:
            start, line = lines[first + len(wanted) - 1]
            yield lines[first][0], start + len(line)


def _normalised(text: str, old: str) -> Iterator[tuple[int, int]]:
    """A single line in which only the amount of white space differs."""
    words = old.split()
    if "\n" in old.strip("\n") or not words:
        return
    wanted = " ".join(words)
    for start, line in _lines(text):
        if wanted in " ".join(line.split()):
            yield from ((start + first, start + end) for first, end in _spaced(line, wanted))


def _spaced(line: str, wanted: str) -> Iterator[tuple[int, int]]:
    """Where a line has these words, with the spaces it has between them."""
    words = [(found.start(), found[0]) for found in re.finditer(r"\S+", line)]
    offsets = [0, *accumulate(len(word) + 1 for _, word in words)][:-1]

    def real(position: int) -> int:
        word = bisect_right(offsets, position) - 1
        return words[word][0] + position - offsets[word]

    for first, end in _exact(" ".join(word for _, word in words), wanted):
        yield real(first), real(end - 1) + 1


def _anchored(text: str, old: str) -> Iterator[tuple[int, int]]:
    """A block whose first and last lines are right, whatever is between them."""
    wanted = [line.strip() for line in old.strip("\n").split("\n")]
    if len(wanted) < 3 or not wanted[0] or not wanted[-1]:
        return
    lines = _lines(text)
    ends = [number for number, (_, line) in enumerate(lines) if line.strip() == wanted[-1]]
    for first, (start, line) in enumerate(lines):
        nearest = bisect_left(ends, first + 2)
        if nearest < len(ends) and line.strip() == wanted[0]:
            end, last = lines[ends[nearest]]
            yield start, end + len(last)


_FALLBACKS: Final[tuple[Callable[[str, str], Iterator[tuple[int, int]]], ...]] = (
    _trimmed,
    _normalised,
    _anchored,
)


class OneEdit(msgspec.Struct, rename="camel", frozen=True):
    old_text: Annotated[str, Meta(min_length=1)]
    new_text: str
    expected_occurrences: Annotated[int, Meta(ge=1)] | None = None


class EditFileArguments(Arguments, frozen=True):
    path: FilePath
    edits: Annotated[list[OneEdit], Meta(min_length=1)]
    expected_sha256: Sha256 | None = None


class EditFile(BuiltInTool[EditFileArguments]):
    name = "edit_file"
    description = "Replace exact pieces of text in a file; all of them or none."
    takes = EditFileArguments
    writes_paths = ("path",)
    guidance = (
        "Read the file first. Copy oldText exactly, with enough lines around it to be there once. "
        "Every edit of one call is matched against the file as it was before the call."
    )

    async def run(self, args: EditFileArguments, context: ToolContext) -> ToolOutput:
        changes = text.replacing((each.old_text, each.new_text) for each in args.edits)
        place = await self.place(context, "write", args.path, changes)
        with recorded(context, self.name, "update", place) as event:
            before = await asyncio.to_thread(disk.read, place)
            event.before_sha256 = before.sha256
            check_hash(place, before, args.expected_sha256)
            if text.is_binary(before.data):
                raise ToolFailure("binary_file", f"{place.shown} is binary", path=place.shown)
            old = text.decode(before.data)
            new = await asyncio.to_thread(apply, old.text, _edits(args), place.shown)
            data = old.encode(new)
            await asyncio.to_thread(disk.replace, place, data, before.mode)
            event.after_sha256 = disk.sha256(data)
            event.diff = await asyncio.to_thread(text.diff, old.text, new, place.shown)
        return changed(place, before.sha256, data, event.diff)


def _edits(args: EditFileArguments) -> list[Edit]:
    return [
        Edit(
            each.old_text.replace("\r\n", "\n"),
            each.new_text.replace("\r\n", "\n"),
            each.expected_occurrences or 1,
        )
        for each in args.edits
    ]

"""Diffs as agents read them: numbered lines, kept ones around the changed ones."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice
from typing import Final, NamedTuple

from stringd.documents.matching import common_lines
from stringd.documents.scan import newline_of

DEFAULT_CONTEXT: Final = 3
DEFAULT_MAX_LINES: Final = 50
NO_CHANGES: Final = "(no changes)"


class Row(NamedTuple):
    """A line of a diff: kept (both numbers), removed (only old) or added (only new)."""

    old: int | None
    new: int | None
    text: str


@dataclass(frozen=True)
class Diff:
    """What changed between two texts."""

    rows: tuple[Row | None, ...]
    """The rows to show, None where kept lines are left out; at most one more than the limit."""
    added: int
    removed: int
    max_lines: int
    fresh: bool
    """The old text was empty: every line is new."""

    @property
    def changed(self) -> bool:
        return self.added + self.removed > 0

    @cached_property
    def text(self) -> str:
        """Two number columns, then ` | `, ` - ` or ` + ` and the line."""
        if not self.changed:
            return NO_CHANGES
        return "\n".join(chain(self._numbered(), self._cut()))

    @cached_property
    def chanflow(self) -> str:
        """The `│` layout of the text transport: one number column, `-│` and `+│` for changes."""
        if not self.changed:
            return NO_CHANGES
        numbers = [row.new or row.old or 0 for row in self._shown if row]
        width = len(str(max(numbers)))
        lines = [f"{'':{width}}  ⋮" if row is None else _bar(row, width) for row in self._shown]
        return "\n".join(chain(lines, self._cut()))

    @property
    def summary(self) -> str:
        """`Added 2 lines, removed 1 line`."""
        parts = []
        if self.added:
            parts.append(f"added {_lines(self.added)}")
        if self.removed:
            parts.append(f"removed {_lines(self.removed)}")
        return ", ".join(parts).capitalize() or "No changes"

    @cached_property
    def _shown(self) -> tuple[Row | None, ...]:
        return self.rows[: self.max_lines]

    def _numbered(self) -> Iterator[str]:
        old_width = _width(row.old for row in self._shown if row)
        new_width = _width(row.new for row in self._shown if row)
        for row in self._shown:
            if row is None:
                yield " " * (old_width + new_width + 3) + "..."
            elif self.fresh:
                yield f"{row.new:>{new_width}} + {row.text}"
            else:
                sign = "+" if row.old is None else "-" if row.new is None else "|"
                old, new = row.old or "", row.new or ""
                yield f"{old:>{old_width}} {new:>{new_width}} {sign} {row.text}"

    def _cut(self) -> Iterator[str]:
        if len(self.rows) > self.max_lines:
            more = self.added + self.removed - self.max_lines
            changed = f"{more} more lines changed, " if more > 0 else ""
            yield f"... ({changed}truncated at {self.max_lines} lines)"


def diff(
    old: str, new: str, context: int = DEFAULT_CONTEXT, max_lines: int = DEFAULT_MAX_LINES
) -> Diff:
    """Compare two texts line by line. A missing final newline is not a difference."""
    newline = newline_of(old if "\n" in old else new)
    before, after = _lines_of(old, newline), _lines_of(new, newline)
    kept = list(common_lines(before, after))
    rows = _rows(before, after, kept, context)
    shown = tuple(islice(rows, max_lines + 1))
    added, removed = len(after) - len(kept), len(before) - len(kept)
    return Diff(shown, added, removed, max_lines, fresh=not old)


def _lines_of(text: str, newline: str) -> list[str]:
    if not text:
        return []
    whole = text if text.endswith("\n") else text + newline
    return whole.removesuffix("\n").split("\n")


class _Hunk(NamedTuple):
    """Lines `row:row_end` of the old text became lines `column:column_end` of the new one."""

    row: int
    row_end: int
    column: int
    column_end: int


def _hunks(rows: int, columns: int, kept: list[tuple[int, int]]) -> Iterator[_Hunk]:
    row = column = 0
    for next_row, next_column in [*kept, (rows, columns)]:
        if (row, column) != (next_row, next_column):
            yield _Hunk(row, next_row, column, next_column)
        row, column = next_row + 1, next_column + 1


def _rows(
    old: list[str], new: list[str], kept: list[tuple[int, int]], context: int
) -> Iterator[Row | None]:
    """Rows of every hunk with its context, and None between hunks whose contexts do not touch."""
    told, shift = 0, 0
    for number, hunk in enumerate(_hunks(len(old), len(new), kept)):
        start = max(told, hunk.row - context)
        if number:
            after = min(told + context, hunk.row)
            yield from _kept(old, told, after, shift)
            start = max(start, after)
            if start > after:
                yield None
        yield from _kept(old, start, hunk.row, hunk.column - hunk.row)
        yield from (Row(at + 1, None, _shown(old[at])) for at in range(hunk.row, hunk.row_end))
        added = range(hunk.column, hunk.column_end)
        yield from (Row(None, at + 1, _shown(new[at])) for at in added)
        told, shift = hunk.row_end, hunk.column_end - hunk.row_end
    yield from _kept(old, told, min(told + context, len(old)), shift)


def _kept(old: list[str], first: int, last: int, shift: int) -> Iterator[Row]:
    return (Row(at + 1, at + 1 + shift, _shown(old[at])) for at in range(first, last))


def _shown(line: str) -> str:
    return line.removesuffix("\r")


def _width(numbers: Iterator[int | None]) -> int:
    return max((len(str(number)) for number in numbers if number), default=1)


def _bar(row: Row, width: int) -> str:
    sign = "+" if row.old is None else "-" if row.new is None else " "
    return f"{row.new or row.old:>{width}} {sign}│ {row.text}"


def _lines(count: int) -> str:
    return f"{count} line" if count == 1 else f"{count} lines"

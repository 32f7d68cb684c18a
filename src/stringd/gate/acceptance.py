"""The person's own rules at the start of a gate: shown whole, and accepted by a key.

Every program of the account can write the file, and the copy of what was accepted before as well.
So all of it is on the screen each time, with marks at what changed, and nothing is remembered as
accepted but by the gate that asked.
"""

from collections.abc import Iterator
from typing import Final

from stringd.gate.confirm import Words
from stringd.gate.display import Line, Span, Style, labelled, line, wrap_exact
from stringd.gate.display import in_order as visible
from stringd.gate.question import ROWS_BELOW, Size
from stringd.gate.rule_places import RulesOnDisk

HEADER: Final = "━━━ Your rules ━━━ stringd gate ━━━"
WORDS: Final = Words(
    "Use these rules until this gate ends? [y/N]",
    "y use them   any other key: ask about everything",
)
# A line that was cut is told from two.
CONTINUED: Final = "┊"
_MARKS: Final = {" ": Style.DIM, "+": Style.BOLD, "-": Style.PLAIN}


def acceptance_pages(rules: RulesOnDisk, before: str | None, size: Size) -> list[list[Line]]:
    """The file in pages, beside what was accepted before it."""
    height = max(size.rows - ROWS_BELOW, 3)
    lines = list(_lines(rules, before, size.columns))
    return [lines[start : start + height] for start in range(0, len(lines), height)]


def marked_lines(text: str, before: str | None) -> Iterator[tuple[str, str]]:
    """Every line of a text, and those that are gone, each with the mark of a diff."""
    new = _text_lines(text)
    if before is None or before == text:
        yield from ((" " if before == text else "+", each) for each in new)
        return
    import difflib  # only where something changed

    for each in difflib.ndiff(_text_lines(before), new):
        if each[:1] in _MARKS:
            yield each[0], each[2:]


def _text_lines(text: str) -> list[str]:
    """As TOML has lines: what looks like one behind another separator would be in a comment."""
    return [each.removesuffix("\r") for each in text.removesuffix("\n").split("\n")]


def _lines(rules: RulesOnDisk, before: str | None, columns: int) -> Iterator[Line]:
    yield line(HEADER, Style.BOLD)
    yield from labelled("File:    ", visible(str(rules.path)), columns)
    yield from labelled("SHA-256: ", rules.digest, columns)
    state = "new" if before is None else "changed" if before != rules.text else "as accepted before"
    count = "1 rule" if len(rules.rules) == 1 else f"{len(rules.rules)} rules"
    yield line(f"State:   {count}, {state}")
    for mark, text in marked_lines(rules.text, before):
        for index, piece in enumerate(wrap_exact(visible(text), max(columns - 2, 10))):
            yield (
                Span(f"{mark if index == 0 else CONTINUED} ", _MARKS[mark]),
                Span(piece, _MARKS[mark]),
            )

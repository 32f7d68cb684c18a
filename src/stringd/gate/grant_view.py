"""What the person reads before granting a command for a while: exactly what is remembered. Pure."""

from collections.abc import Iterator
from typing import Final

from stringd.gate.display import Line, Style, clipped, labelled, line
from stringd.gate.grants import GRANT_SECONDS, GRANT_USES
from stringd.gate.question import MAX_NAME, ROWS_BELOW, Question, Size, body_lines, client_text

HEADER: Final = "━━━ Grant ━━━ stringd gate ━━━"


def grant_pages(question: Question, size: Size) -> list[list[Line]]:
    """The grant in pages, each short enough to leave room below it."""
    height = max(size.rows - ROWS_BELOW, 3)
    lines = list(_lines(question, size.columns))
    return [lines[start : start + height] for start in range(0, len(lines), height)]


def _lines(question: Question, columns: int) -> Iterator[Line]:
    request = question.request
    session = clipped(request.session, MAX_NAME) or "(unnamed)"
    yield line(HEADER, Style.BOLD)
    what = "exactly this command, with exactly this environment, while its files stay as they are"
    yield from labelled("Allows:  ", what, columns, Style.BOLD)
    yield from labelled("For:     ", f"{session}, {client_text(question)}", columns)
    minutes = f"{GRANT_SECONDS / 60:.0f} minutes"
    end = f"{minutes}, {GRANT_USES} uses, or the next time you deny this caller anything"
    yield from labelled("Until:   ", end, columns)
    if not request.env:
        yield line("Env:     nothing but what every command gets")
    yield from body_lines(question, columns)

"""What a request is about, for the question's body and for single lines elsewhere. Pure."""

import json
from collections.abc import Iterator
from typing import Final

from stringd.gate.display import (
    NON_ASCII_FLAG,
    Line,
    Span,
    Style,
    clipped,
    flagged,
    in_order,
    labelled,
    line,
    pipeline_text,
    wrap_exact,
)
from stringd.gate.validate import ValidatedRequest

MAX_STAGES_SHOWN: Final = 100
MAX_WHO: Final = 128
GUTTER: Final = "│ "


def subject(request: ValidatedRequest) -> str:
    """What is asked, in one line: which command and where, or what an agent wants to do."""
    if request.is_decision:
        return f"{request.tool}: {request.text.partition(chr(10))[0]}"
    place = f"on {request.host}: " if request.is_remote else ""
    return place + pipeline_text(request.pipeline[:MAX_STAGES_SHOWN])


def answered_elsewhere(last_words: bytes) -> str:
    """How a permission ended that its caller withdrew; it may have said who answered it."""
    try:
        said = json.loads(last_words)
    except (ValueError, RecursionError):
        said = None
    who = said.get("answered_by") if isinstance(said, dict) else None
    if not isinstance(who, str) or not who:
        return "→ Withdrawn: answered elsewhere, or the agent went away"
    return f"→ Answered elsewhere: {clipped(who, MAX_WHO)}"


def permission_lines(request: ValidatedRequest, columns: int) -> Iterator[Line]:
    """What an agent wants to do, whole: every line of its text behind a gutter."""
    yield from labelled("Tool:    ", flagged(request.tool), columns, Style.BOLD)
    for text in request.text.split("\n"):
        # A cut line is told from two by the gutter, which only the first piece has.
        gutter = GUTTER
        for piece in wrap_exact(in_order(text), max(columns - len(GUTTER), 10)):
            yield (Span(gutter, Style.DIM), Span(piece, Style.BOLD))
            gutter = "┊ "
    if not request.text.isascii():
        yield line(NON_ASCII_FLAG.strip(), Style.DIM)
    yield from labelled("Runs:    ", "nothing here: the agent does it if you allow it", columns)

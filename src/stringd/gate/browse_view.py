"""The person's list and the whole output of a command, as rows. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from stringd.gate.board import Board, BoardEntry, Phase
from stringd.gate.display import (
    Line,
    Span,
    Style,
    clipped,
    fitted,
    labelled,
    line,
    render,
    wrap_exact,
)
from stringd.gate.pipeline import Outcome
from stringd.gate.question import MAX_NAME, Size

HEADER: Final = "━━━ Commands ━━━ stringd gate ━━━"
# What the screen has below: an empty row, a hint and the keys.
_BELOW: Final = 3
# Opened by a digit, so there are no more on a page.
_DIGITS: Final = 9


def list_pages(entries: Sequence[BoardEntry], size: Size) -> list[list[BoardEntry]]:
    """The entries of each page; there is always one page."""
    height = max(1, min(_DIGITS, size.rows - _BELOW - 2))
    pages = [list(entries[at : at + height]) for at in range(0, len(entries), height)]
    return pages or [[]]


def list_rows(page: Sequence[BoardEntry], board: Board, place: str, size: Size) -> list[Line]:
    """One page of the list."""
    rows = [line(HEADER[: size.columns], Style.BOLD), line(place[: size.columns], Style.DIM)]
    for digit, entry in enumerate(page, start=1):
        style = Style.BOLD if entry.phase is not Phase.ENDED else Style.PLAIN
        text = f" {digit}  {_state(entry, board)}  {_rank(entry)}{entry.command}"
        rows.append(line(fitted(text, size.columns), style))
    if not page:
        rows.append(line(" nothing was asked yet"[: size.columns]))
    keys = "1-9 open one   Space, b more   p passkeys   q back"
    return [*rows, line(""), line(keys[: size.columns], Style.DIM)]


def _state(entry: BoardEntry, board: Board) -> str:
    if entry.phase is Phase.ENDED:
        return f"{entry.at} {entry.how:<10}"
    return f"{entry.phase.value:<8} {board.seconds(entry):>4} s     "


def _rank(entry: BoardEntry) -> str:
    return "as root: " if entry.as_root else ""


class OutputPlace(NamedTuple):
    """Where in the output of a command a page begins."""

    stream: int = 0
    offset: int = 0


@dataclass(frozen=True, slots=True)
class OutputPages:
    """An entry with all of its output, which is read a page at a time."""

    head: tuple[Line, ...]
    streams: tuple[tuple[str, bytes], ...]

    @classmethod
    def of(cls, entry: BoardEntry, board: Board, columns: int) -> "OutputPages":
        session = clipped(entry.session, MAX_NAME) or "(unnamed)"
        head = [
            line(HEADER[:columns], Style.BOLD),
            *labelled("Command: ", f"{_rank(entry)}{render(entry.command)}", columns, Style.BOLD),
            *labelled("State:   ", _state(entry, board).strip(), columns),
            *labelled("From:    ", session, columns),
        ]
        return cls(tuple(head), tuple(_streams(entry.outcome)))

    def page(self, start: OutputPlace, size: Size) -> tuple[list[Line], OutputPlace | None]:
        """The rows from a place on, and where the next page begins; None at the end."""
        rows = list(self.head)
        room = max(3, size.rows - len(rows) - _BELOW)
        lines: list[Line] = []
        stream, offset = start
        while stream < len(self.streams):
            name, data = self.streams[stream]
            if offset == 0:
                lines.append(line(f"== {name} =="[: size.columns], Style.DIM))
            while offset < len(data):
                if len(lines) >= room:
                    return rows + lines, OutputPlace(stream, offset)
                piece, offset = _row(data, offset, max(10, size.columns - 2))
                lines.append((Span("│ ", Style.DIM), Span(piece)))
            stream, offset = stream + 1, 0
            if stream < len(self.streams) and len(lines) >= room:
                return rows + lines, OutputPlace(stream, 0)
        return rows + lines, None


def _streams(outcome: Outcome | None) -> list[tuple[str, bytes]]:
    if outcome is None:
        return []
    several = len(outcome.stderrs) > 1
    named = [("stdout", outcome.stdout)]
    named += [
        (f"stderr[{index}]" if several else "stderr", stderr)
        for index, stderr in enumerate(outcome.stderrs)
    ]
    return [(name, b"".join(each.parts())) for name, each in named if each.kept]


def _row(data: bytes, offset: int, width: int) -> tuple[str, int]:
    """As much of a line as fits a row, and where the next row begins."""
    end = data.find(b"\n", offset, offset + 4 * width)
    whole = end >= 0
    raw = data[offset : end if whole else offset + 4 * width]
    # A character that was cut in two belongs to the next row.
    cut = 0 if whole or offset + len(raw) >= len(data) else _unfinished(raw)
    raw = raw[: len(raw) - cut]
    text = raw.decode("utf-8", "surrogateescape")
    shown = render(text.removesuffix("\r") if whole else text)
    first = wrap_exact(shown, width)[0]
    if len(first) == len(shown):
        return first, end + 1 if whole else offset + len(raw)
    taken = _source_length(text, len(first))
    return render(text[:taken]), offset + len(text[:taken].encode("utf-8", "surrogateescape"))


def _unfinished(raw: bytes) -> int:
    """How many bytes at the end begin a character that is not complete."""
    for back in range(1, min(4, len(raw)) + 1):
        lead = raw[-back]
        if lead < 0x80:
            return 0
        if lead >= 0xC0:
            size = 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
            return back if back < size else 0
    return 0


def _source_length(text: str, rendered: int) -> int:
    """How many characters give at most so many when rendered; at least one."""
    length = 0
    for index, character in enumerate(text):
        length += len(render(character))
        if length > rendered:
            return max(1, index)
    return len(text)

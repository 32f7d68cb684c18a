"""The one way to the terminal: nothing a stranger wrote arrives there as anything but visible text.

`paint` is the only maker of `Painted`, and the terminal writes nothing else. It passes every piece
of text through `render`; colour is added around the pieces, never taken from them.
"""

from collections.abc import Iterable, Iterator
from enum import Enum
from typing import Final, NamedTuple, NewType

from stringd.gate.characters import cells, deceives, is_visible, turns

Painted = NewType("Painted", str)

NON_ASCII_FLAG: Final = " [non-ASCII]"
# A cut between two words is written as a shell writes it, so that a copied command still works.
CONTINUED: Final = " \\"
CUT_IN_WORD: Final = "↩"

_RESET: Final = "\x1b[0m"
# Undecodable bytes arrive as these surrogates when text was decoded with `surrogateescape`.
_RAW_BYTES: Final = range(0xDC80, 0xDD00)


class Style(Enum):
    PLAIN = ""
    BOLD = "\x1b[1m"
    DIM = "\x1b[2m"
    # Another machine: like nothing else on the screen.
    ELSEWHERE = "\x1b[1;30;46m"


class Span(NamedTuple):
    text: str
    style: Style = Style.PLAIN


Line = tuple[Span, ...]


def line(text: str, style: Style = Style.PLAIN) -> Line:
    return (Span(text, style),)


def render(text: str) -> str:
    r"""Text as visible characters only: what cannot be seen is written `\xNN` or `\u{NNNN}`."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(character if is_visible(character) else _number(character) for character in text)


def in_order(text: str) -> str:
    """Rendered text that every terminal shows in the order it has.

    Letters that are read from right to left are written by number: with two of them a terminal may
    exchange what is between them, and so one argument of a command for another.
    """
    if text.isascii():
        return render(text)
    return "".join(_number(each) if turns(each) else render(each) for each in text)


def paint(lines: Iterable[Line], *, colour: bool) -> Painted:
    """Lines ready for the terminal, each ended by a newline."""
    return Painted("".join(f"{_paint_line(each, colour)}\n" for each in lines))


def paint_inline(spans: Line, *, colour: bool) -> Painted:
    """A piece of a line, without the newline: a question that waits for its answer."""
    return Painted(_paint_line(spans, colour))


def flagged(text: str) -> str:
    """Rendered text, with a warning behind it when its letters may look like others."""
    return render(text) + (NON_ASCII_FLAG if deceives(text) else "")


def clipped(text: str, limit: int) -> str:
    """Rendered text of at most `limit` characters; what is missing is counted."""
    shown = flagged(text[:limit])
    hidden = len(text) - limit
    return f"{shown}… ({hidden} more characters)" if hidden > 0 else shown


def quote(word: str) -> str:
    r"""A word as a shell would need it. Different words never look the same.

    Plain words are bare, others in `'…'`; a word with anything unseen is in `$'…'`, where
    a backslash is always an escape.
    """
    if word and word.isascii() and all(c.isalnum() or c in "-_/.:,@%+=" for c in word):
        return word
    if all(is_visible(each) and (each.isascii() or not turns(each)) for each in word):
        return "'" + word.replace("'", "'\\''") + "'"
    escaped = word.replace("\\", "\\\\").replace("'", "\\'")
    return f"$'{in_order(escaped)}'"


def command_words(stage: Iterable[str]) -> list[str]:
    """The words of one command, quoted."""
    words = [quote(word) for word in stage]
    # An assignment in front of a command means something else to a shell.
    if words and "=" in words[0] and not words[0].startswith(("'", "$")):
        words[0] = f"'{words[0]}'"
    return words


def pipeline_words(pipeline: Iterable[Iterable[str]]) -> list[str]:
    """The quoted words of a pipeline; a bare `|` is always a pipe, for a word it is quoted."""
    words: list[str] = []
    for stage in pipeline:
        words += [*(["|"] if words else []), *command_words(stage)]
    return words


def pipeline_text(pipeline: Iterable[Iterable[str]]) -> str:
    """The whole pipeline on one line."""
    return " ".join(pipeline_words(pipeline))


def width_of(text: str) -> int:
    """How many columns a text may take at most."""
    return len(text) if text.isascii() else sum(map(cells, text))


def fitted(text: str, width: int) -> str:
    """Rendered text cut to the width, with a mark where it was cut."""
    shown = render(text)
    if width_of(shown) <= width:
        return shown
    # The mark is not ASCII either and may take two columns.
    return shown[: _fit(shown, 0, max(width - 2, 1))] + "…"


def wrap_exact(text: str, width: int) -> list[str]:
    """Cut rendered text into pieces of at most `width` columns; joined they are the text again.

    A piece ends after a blank where one is near, so that words stay whole.
    """
    pieces: list[str] = []
    start = 0
    while True:
        end = _fit(text, start, width)
        if end < len(text):
            blank = text.rfind(" ", start + (end - start) // 2, end)
            end = blank + 1 if blank >= 0 else end
        pieces.append(text[start:end])
        if end >= len(text):
            return pieces
        start = end


def labelled(label: str, value: str, width: int, style: Style = Style.PLAIN) -> list[Line]:
    """`label` and a rendered value beside it; further lines stay right of the label.

    So no value can place text at the left edge, where the labels are.
    """
    indent = len(label)
    pieces = wrap_exact(value, max(width - indent, 10))
    return [
        line(f"{label if index == 0 else ' ' * indent}{piece}", style)
        for index, piece in enumerate(pieces)
    ]


def command_lines(
    prefix: str, words: Iterable[str], width: int, style: Style = Style.BOLD
) -> list[Line]:
    r"""Quoted words behind a prefix, in lines that fit.

    A line that ends in ` \` is cut between words, as a shell reads it. A word longer than a line is
    cut with a mark at both ends, because a blank at the edge would not be seen.
    """
    indent = len(prefix)
    lines: list[Line] = []
    opening, row = prefix, ""
    room = max(width - indent - len(CONTINUED), 10)
    for word in words:
        if row and width_of(row) + 1 + width_of(word) > room:
            lines.append((Span(opening + row, style), Span(CONTINUED, Style.DIM)))
            opening, row = " " * indent, ""
        row = f"{row} {word}" if row else word
        while width_of(row) > room:
            end = _fit(row, 0, room)
            lines.append((Span(opening + row[:end], style), Span(CUT_IN_WORD, Style.DIM)))
            opening, row = " " * (indent - 2) + "┊ ", row[end:]
    return [*lines, (Span(opening + row, style),)]


def first_lines(output: bytes, count: int, width: int) -> Iterator[str]:
    """The first lines of a command's output, rendered and cut to the terminal's width."""
    for raw in output.split(b"\n", count)[:count]:
        text = render(raw[: 4 * width].decode("utf-8", "surrogateescape").removesuffix("\r"))
        yield fitted(text, width)


def _paint_line(spans: Line, colour: bool) -> str:
    return "".join(_paint_span(span, colour) for span in spans)


def _paint_span(span: Span, colour: bool) -> str:
    text = render(span.text)
    if not colour or span.style is Style.PLAIN or not text:
        return text
    return f"{span.style.value}{text}{_RESET}"


def _number(character: str) -> str:
    code = ord(character)
    if code in _RAW_BYTES:
        return f"\\x{code - 0xDC00:02x}"
    return f"\\x{code:02x}" if code <= 0xFF else f"\\u{{{code:04x}}}"


def _fit(text: str, start: int, width: int) -> int:
    """The end of the longest piece from `start` that fits the width; at least one character."""
    if text.isascii():
        return min(len(text), start + max(width, 1))
    used = 0
    for index in range(start, len(text)):
        used += cells(text[index])
        if used > width and index > start:
            return index
    return len(text)

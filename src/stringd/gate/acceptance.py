"""The person's own rules at the start of a gate: shown whole, and accepted by a key.

Every program of the account can write the file, and the copy of what was accepted before as well.
So all of it is on the screen each time, with marks at what changed, and nothing is remembered as
accepted but by the gate that asked.
"""

import select
import time
from collections.abc import Callable, Iterator
from typing import Final

from stringd.gate.arming import ARMING_SECONDS, Arming
from stringd.gate.display import Line, Span, Style, labelled, line, wrap_exact
from stringd.gate.display import in_order as visible
from stringd.gate.keys import Key
from stringd.gate.question import ROWS_BELOW, Size
from stringd.gate.rule_places import RulesOnDisk
from stringd.gate.terminal import Terminal

HEADER: Final = "━━━ Your rules ━━━ stringd gate ━━━"
PROMPT: Final = "Use these rules until this gate ends? [y/N]"
# A line that was cut is told from two.
CONTINUED: Final = "┊"
_LOOK_SECONDS: Final = 0.5
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


class Acceptance:
    """Asks once whether the rules count."""

    def __init__(
        self,
        terminal: Terminal,
        timeout: int,
        is_ending: Callable[[], bool],
        quiet: float = ARMING_SECONDS,
    ) -> None:
        self._terminal = terminal
        self._timeout = timeout
        self._is_ending = is_ending
        self._arming = Arming(quiet)
        self._page = 0
        self._seen_all = False
        self._message = ""

    def ask(self, rules: RulesOnDisk, before: str | None) -> bool:
        """Whether the person said yes. Raises `TroubleError` when the terminal fails."""
        deadline = time.monotonic() + self._timeout
        with self._terminal.raw() as typed_ahead:
            self._arming.typed_ahead(typed_ahead, time.monotonic())
            size = self._terminal.size
            pages = acceptance_pages(rules, before, size)
            self._show(pages, size)
            while not self._is_ending() and time.monotonic() < deadline:
                if self._terminal.size != size:
                    size, self._page, self._seen_all = self._terminal.size, 0, False
                    self._terminal.forget_screen()
                    pages = acceptance_pages(rules, before, size)
                    self._show(pages, size)
                match self._key(deadline):
                    case None:
                        continue
                    case Key.YES if self._seen_all:
                        return True
                    case Key.YES:
                        self._message = "Not yet: Space reads on, and y works on the last page."
                    case Key.NEXT:
                        self._page = min(self._page + 1, len(pages) - 1)
                    case Key.BACK:
                        self._page = max(self._page - 1, 0)
                    case Key.NOTHING | Key.DETAILS:
                        pass
                    case _:
                        return False
                self._show(pages, size)
        return False

    def _show(self, pages: list[list[Line]], size: Size) -> None:
        self._seen_all = self._seen_all or self._page == len(pages) - 1
        place = f"Page {self._page + 1} of {len(pages)}. Space reads on."
        rows = [
            *pages[self._page],
            line(self._message[: size.columns], Style.BOLD),
            line(place[: size.columns] if len(pages) > 1 else "", Style.BOLD),
            line("y use them   any other key: ask about everything"[: size.columns], Style.DIM),
            line(f"{PROMPT} "[: size.columns], Style.BOLD),
        ]
        self._terminal.draw(rows)
        self._arming.shown(time.monotonic())

    def _key(self, deadline: float) -> Key | None:
        """The next key that counts, or None after a while."""
        now = time.monotonic()
        if (key := self._arming.take(now)) is not None:
            return key
        if (dropped := self._arming.take_dropped(now)) is not None:
            self._message = dropped.value
            return Key.NOTHING
        due = self._arming.due()
        until = min(deadline, now + _LOOK_SECONDS, *([] if due is None else [due]))
        if select.select([self._terminal.keys], [], [], max(0.0, until - now))[0]:
            data = self._terminal.read()
            if not data:
                return Key.SILENCE
            self._arming.feed(data, time.monotonic())
        return None

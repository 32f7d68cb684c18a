"""One yes-or-no question of the gate itself, in pages, answered by a key that was meant."""

import select
import time
from collections.abc import Callable
from typing import Final, NamedTuple

from stringd.gate.arming import Arming
from stringd.gate.display import Line, Style, line
from stringd.gate.keys import Key
from stringd.gate.question import Size
from stringd.gate.terminal import Terminal

_LOOK_SECONDS: Final = 0.5

PagesOf = Callable[[Size], list[list[Line]]]


class Words(NamedTuple):
    """What is asked below the pages, and what the keys do."""

    question: str
    keys: str


class Confirmation:
    """Asks once about what is shown: `y` after the last page is a yes, and nothing else is."""

    def __init__(
        self,
        terminal: Terminal,
        timeout: int,
        is_ending: Callable[[], bool],
        arming: Arming,
    ) -> None:
        self._terminal = terminal
        self._timeout = timeout
        self._is_ending = is_ending
        self._arming = arming
        self._page = 0
        self._seen_all = False
        self._message = ""

    def ask(self, pages_of: PagesOf, words: Words) -> bool:
        """Whether the person said yes. Raises `TroubleError` when the terminal fails."""
        with self._terminal.raw() as typed_ahead:
            self._arming.typed_ahead(typed_ahead, time.monotonic())
            return self.ask_in_raw(pages_of, words)

    def ask_in_raw(self, pages_of: PagesOf, words: Words) -> bool:
        """The same where the terminal is raw already."""
        deadline = time.monotonic() + self._timeout
        size = self._terminal.size
        pages = pages_of(size)
        self._show(pages, size, words)
        while not self._is_ending() and time.monotonic() < deadline:
            if self._terminal.size != size:
                size, self._page, self._seen_all = self._terminal.size, 0, False
                self._terminal.forget_screen()
                pages = pages_of(size)
                self._show(pages, size, words)
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
            self._show(pages, size, words)
        return False

    def _show(self, pages: list[list[Line]], size: Size, words: Words) -> None:
        self._seen_all = self._seen_all or self._page == len(pages) - 1
        place = f"Page {self._page + 1} of {len(pages)}. Space reads on."
        rows = [
            *pages[self._page],
            line(self._message[: size.columns], Style.BOLD),
            line(place[: size.columns] if len(pages) > 1 else "", Style.BOLD),
            line(words.keys[: size.columns], Style.DIM),
            line(f"{words.question} "[: size.columns], Style.BOLD),
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

"""The person's list on the screen: what waits and runs, with whole outputs. Approves nothing."""

import time
from collections.abc import Callable, Mapping
from enum import Enum, auto
from typing import Final

from stringd.gate.arming import Arming
from stringd.gate.board import Board, BoardEntry
from stringd.gate.browse_view import OutputPages, OutputPlace, list_pages, list_rows
from stringd.gate.display import Line, Style, line
from stringd.gate.keys import KeyReader
from stringd.gate.terminal import Terminal
from stringd.gate.watch import READABLE

Wait = Callable[[Mapping[int, int], float], Mapping[int, int]]
_REFRESH_SECONDS: Final = 1.0


class Turning(Enum):
    NEXT = auto()
    BACK = auto()
    LEAVE = auto()
    END = auto()
    PASSKEYS = auto()
    NOTHING = auto()


_KEYS: Final = {
    b" ": Turning.NEXT,
    b"v": Turning.NEXT,
    b"\x1b[B": Turning.NEXT,
    b"\x1bOB": Turning.NEXT,
    b"\x1b[6~": Turning.NEXT,
    b"b": Turning.BACK,
    b"\x1b[A": Turning.BACK,
    b"\x1bOA": Turning.BACK,
    b"\x1b[5~": Turning.BACK,
    b"q": Turning.LEAVE,
    b"l": Turning.LEAVE,
    b"\x1b": Turning.LEAVE,
    b"\r": Turning.LEAVE,
    b"\n": Turning.LEAVE,
    b"x": Turning.END,
    b"p": Turning.PASSKEYS,
}


class Browser:
    """Shows the board until the person has seen enough.

    `wait` waits for descriptors like `Watch.wait`, and raises what ends everything; `is_over` says
    that the screen is needed for something else. `passkeys` shows those, where that may be.
    """

    def __init__(
        self,
        terminal: Terminal,
        board: Board,
        arming: Arming,
        wait: Wait,
        is_over: Callable[[], bool],
        passkeys: Callable[[], None] | None = None,
    ) -> None:
        self._terminal = terminal
        self._board = board
        self._arming = arming
        self._wait = wait
        self._is_over = is_over
        self._passkeys = passkeys
        self._reader = KeyReader()
        self._page = 0
        self._on_page: list[BoardEntry] = []
        self._opened: BoardEntry | None = None
        self._output: OutputPages | None = None
        # Where the pages that were read begin, the one on the screen last.
        self._places = [OutputPlace()]
        self._next: OutputPlace | None = None
        self._message = ""
        self._size = terminal.size

    def run(self) -> None:
        """Show it. Only while the terminal is raw and nobody else draws on it."""
        self._terminal.forget_screen()
        self._draw()
        while not self._is_over():
            for press in self._presses():
                if self._take(press):
                    return
            self._draw()

    def _presses(self) -> list[bytes]:
        now = time.monotonic()
        due = self._reader.due()
        patience = _REFRESH_SECONDS if due is None else min(_REFRESH_SECONDS, max(0.0, due - now))
        ready = self._wait({self._terminal.keys: READABLE}, patience)
        now = time.monotonic()
        if self._terminal.keys not in ready:
            return self._reader.flush(now)
        data = self._terminal.read()
        # What is typed here decides nothing, here or at the next question.
        self._arming.used_elsewhere(data, now)
        return self._reader.feed(data, now) if data else [b"q", b"q"]

    def _take(self, press: bytes) -> bool:
        """Do what a key says; whether it leaves the list."""
        self._message = ""
        if press.isdigit() and self._opened is None:
            self._open(int(press))
            return False
        turning = _KEYS.get(press, Turning.NOTHING)
        if turning is Turning.LEAVE:
            if self._opened is None:
                return True
            self._opened = self._output = None
        elif turning is Turning.END:
            self._end()
        elif turning is Turning.PASSKEYS:
            self._show_passkeys()
        elif turning is not Turning.NOTHING:
            self._turn(turning)
        return False

    def _show_passkeys(self) -> None:
        if self._passkeys is None:
            self._message = "Passkeys can be seen when no question is open."
            return
        self._passkeys()
        self._terminal.forget_screen()

    def _open(self, digit: int) -> None:
        if 1 <= digit <= len(self._on_page):
            self._opened = self._on_page[digit - 1]
            self._output, self._places = None, [OutputPlace()]

    def _end(self) -> None:
        if self._opened is None:
            self._message = "Open one with its digit first; x ends it there."
        elif self._board.abort(self._opened):
            self._message = "It is being ended."
        else:
            self._message = "It does not run."

    def _turn(self, turning: Turning) -> None:
        if self._opened is None:
            self._page += 1 if turning is Turning.NEXT else -1
        elif turning is Turning.BACK:
            self._places = self._places[: max(1, len(self._places) - 1)]
        elif self._next is not None:
            self._places.append(self._next)

    def _draw(self) -> None:
        if (size := self._terminal.size) != self._size:
            self._size, self._output, self._places = size, None, self._places[:1]
            self._terminal.forget_screen()
        rows = self._list() if self._opened is None else self._entry(self._opened)
        self._terminal.draw(rows, whole=False)

    def _list(self) -> list[Line]:
        size = self._size
        entries = self._board.entries()
        pages = list_pages(entries, size)
        self._page = min(max(self._page, 0), len(pages) - 1)
        self._on_page = pages[self._page]
        count = "1 command" if len(entries) == 1 else f"{len(entries)} commands"
        place = f"{count}, page {self._page + 1} of {len(pages)}"
        rows = list_rows(self._on_page, self._board, place, size)
        rows[-2] = line(self._message[: size.columns], Style.BOLD)
        return rows

    def _entry(self, entry: BoardEntry) -> list[Line]:
        size = self._size
        if self._output is None or entry.ending is not None or not self._output.streams:
            self._output = OutputPages.of(entry, self._board, size.columns)
        rows, self._next = self._output.page(self._places[-1], size)
        more = "Space reads on" if self._next is not None else "the end"
        ends = "   x ends it" if entry.ending is not None else ""
        return [
            *rows,
            line(self._message[: size.columns], Style.BOLD),
            line(f"{more}   b back{ends}   q list"[: size.columns], Style.DIM),
        ]

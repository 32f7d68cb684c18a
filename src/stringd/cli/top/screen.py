"""The live picture: drawn in place, moved through and acted on with single keys."""

import os
import select
import shutil
import sys
import termios
import threading
import time
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, Final

from stringd.cli.top.answer import OpenPrompt, open_prompt
from stringd.cli.top.rows import Overview, TopRow, fitted, rows, summary
from stringd.client.feed import follow, overview
from stringd.client.http import TransportError

REDRAW_SECONDS: Final = 1.0
LOOK_SECONDS: Final = 0.4
"""Many events in a row are one look at the daemon."""
RETRY_SECONDS: Final = 1.0
KEYS: Final = "j k move   a answer   s stop run   x kill command   o open page   q quit"

Act = Callable[[TopRow], str]
"""Does something with the chosen row; returns what to say about it."""


class Screen:
    """Shows a daemon until `q`. `stop`, `kill` and `open_page` are what the keys do."""

    def __init__(self, port: int, *, stop: Act, kill: Act, open_page: Act) -> None:
        self._port = port
        self._acts = {"s": stop, "x": kill, "o": open_page}
        self._words = {"s": "Stop this run", "x": "Kill what runs there"}
        self._open: OpenPrompt | None = None
        self._asked: tuple[str, TopRow] | None = None
        self._chosen = 0
        self._said = ""
        self._gone = ""
        self._seen: Overview = overview(port)
        self._woken, self._wake = os.pipe()
        os.set_blocking(self._wake, False)

    def run(self) -> None:
        """Show and obey until the human quits."""
        threading.Thread(target=self._listen, daemon=True).start()
        due = 0.0
        with _own_screen():
            while True:
                self._draw()
                rest = due - time.monotonic()
                heard = [0] if rest > 0 else [0, self._woken]
                ready, _, _ = select.select(heard, [], [], rest if rest > 0 else REDRAW_SECONDS)
                if 0 in ready and not all(map(self._pressed, _keys(os.read(0, 64)))):
                    return
                if self._woken in ready:
                    os.read(self._woken, 65536)
                    due = time.monotonic() + LOOK_SECONDS
                    self._look()

    def _look(self) -> None:
        before = self._choice()
        try:
            self._seen = overview(self._port)
        except TransportError as error:
            self._gone = f"{error}; what you see is old"
            return
        self._gone = ""
        # The choice stays with what was chosen, wherever that is now.
        named = [(row.kind, row.about) for row in self._choices()]
        if before is not None and (before.kind, before.about) in named:
            self._chosen = named.index((before.kind, before.about))

    def _choices(self) -> list[TopRow]:
        return [row for row in self._rows() if row.kind != "head"]

    def _choice(self) -> TopRow | None:
        found = self._choices()
        return found[min(self._chosen, len(found) - 1)] if found else None

    def _listen(self) -> None:
        """Wake the picture at every event, across restarts of the daemon."""
        while True:
            try:
                for _ in follow(self._port):
                    self._ring()
            except TransportError:
                self._ring()
                time.sleep(RETRY_SECONDS)
                self._ring()

    def _ring(self) -> None:
        try:
            os.write(self._wake, b".")
        except BlockingIOError:
            return

    def _pressed(self, key: str) -> bool:
        """Obey a key; False when the human wants to leave."""
        if self._open is not None:
            went = self._open.press(key)
            if not went.open:
                self._open, self._said = None, went.said
            return True
        if self._asked is not None:
            (act, asked), self._asked = self._asked, None
            self._said = self._acts[act](asked) if key == "y" else ""
            return True
        self._said = ""
        if key in ("q", "\x04"):
            return False
        if key in ("j", "k"):
            self._chosen += 1 if key == "j" else -1
        elif key == "a" and (row := self._choice()) is not None:
            found = open_prompt(self._port, row)
            if isinstance(found, str):
                self._said = found
            else:
                self._open = found
        elif key in self._acts and (row := self._choice()) is not None:
            if key in self._words:
                self._asked = key, row
            else:
                self._said = self._acts[key](row)
        self._chosen = max(0, min(self._chosen, len(self._choices()) - 1))
        return True

    def _rows(self) -> list[TopRow]:
        return rows(self._seen, datetime.now(UTC))

    def _draw(self) -> None:
        size = shutil.get_terminal_size()
        width, height = size.columns, size.lines
        if self._open is not None:
            asked = _wrapped(self._open.lines, width)
            self._open.whole = len(asked) < height
            _show(asked[: height - 1], self._open.foot, width, height)
            return
        lines: list[str] = []
        number, at = -1, 0
        for row in self._rows():
            number += row.kind != "head"
            chosen = row.kind != "head" and number == self._chosen
            at = len(lines) if chosen else at
            lines.append(_styled(row, width, chosen=chosen))
        room = max(1, height - 3)
        first = max(0, min(at - room // 2, len(lines) - room))
        last = self._said or self._gone or KEYS
        if self._asked is not None:
            key, row = self._asked
            last = f"{self._words[key]}? y, or any other key to leave it: {row.text}"
        shown = [summary(self._seen, self._port)[:width], "", *lines[first : first + room]]
        _show(shown, last, width, height)


def _show(lines: list[str], last: str, width: int, height: int) -> None:
    """Draw lines from the top, and one at the bottom: its end, where it is being typed."""
    picture = "\x1b[K\r\n".join([*lines, *[""] * (height - 1 - len(lines))])
    foot = last if len(last) <= width else f"…{last[-(width - 1) :]}"
    sys.stdout.write(f"\x1b[H{picture}\x1b[K\r\n\x1b[2m{foot}\x1b[0m\x1b[K")
    sys.stdout.flush()


def _wrapped(lines: list[str], width: int) -> list[str]:
    """Every line whole, on as many as it takes."""
    return [line[at : at + width] for line in lines for at in range(0, len(line) or 1, width)]


def _keys(typed: bytes) -> list[str]:
    """The keys in what the terminal sent; arrows move as letters do, a hang-up quits."""
    text = typed.decode("utf-8", "replace").replace("\x1b[A", "k").replace("\x1b[B", "j")
    return list(text) or ["q"]


def _styled(row: TopRow, width: int, *, chosen: bool) -> str:
    text = fitted(row, width)
    if chosen:
        return f"\x1b[7m{text:<{width}}\x1b[0m"
    if row.kind in ("head", "prompt", "gate"):
        return f"\x1b[1m{text}\x1b[0m"
    return text if row.state in ("working", "waits", "failed") else f"\x1b[2m{text}\x1b[0m"


@contextmanager
def _own_screen() -> Iterator[None]:
    """The terminal without echo and line editing, on a screen that is put away afterwards."""
    saved: list[Any] = termios.tcgetattr(0)
    tty.setcbreak(0)
    sys.stdout.write("\x1b[?1049h\x1b[?25l\x1b[2J")
    try:
        yield
    finally:
        sys.stdout.write("\x1b[?25h\x1b[?1049l")
        sys.stdout.flush()
        termios.tcsetattr(0, termios.TCSADRAIN, saved)

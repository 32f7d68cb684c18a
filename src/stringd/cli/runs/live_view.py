"""A run as a live picture in the terminal: flow, what agents do, usage, and a line to type in."""

import asyncio
import os
import sys
from typing import Final

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from stringd.cli.keys import Keyboard
from stringd.cli.runs.frame import Frame, FrameShape
from stringd.cli.runs.plain_view import way_on
from stringd.cli.runs.state import RunState
from stringd.cli.streams import visible
from stringd.wire.runs import messages as m

_FRAMES_PER_SECOND: Final = 12
# Drawn beside what the terminal shows otherwise, without line wrapping: whatever its size becomes,
# nothing of an earlier picture is left.
_OPEN: Final = "\x1b[?1049h\x1b[?7l"
_CLOSE: Final = "\x1b[?7h\x1b[?1049l"
_ANSWERS: Final = {"1": "yes\r", "2": "always\r", "3": "no ", "4": "never "}


class LiveView:
    """Redraws itself while open. Tab opens what is folded, page up and down scroll."""

    def __init__(self, state: RunState, keyboard: Keyboard) -> None:
        self._state = state
        self._editor = keyboard.editor
        keyboard.translate = self._pressed
        self._console = Console(force_terminal=True, width=80)
        self._frame = Frame(state, self._console)
        self._notice = ""
        self._opened = False
        self._back = 0
        self._drawn: tuple[tuple[int, int], list[str]] | None = None
        self._write(_OPEN)
        self._redraw()

    def see(self, message: m.DaemonMessage) -> None:
        """The picture is made from the state; a message ends what was noted before it."""
        if isinstance(message, m.RunBroadcast):
            self._notice = ""

    def note(self, text: str) -> None:
        self._notice = text

    def close(self) -> None:
        """End the picture and leave behind what happened."""
        self._next.cancel()
        self._write(_CLOSE)
        width = _terminal_size()[0]
        for line in self._frame.whole(width):
            self._write(f"{line}\n")
        if self._notice:
            self._write(f"{visible(self._notice)}\n")
        self._console.width = width
        match self._state.ending:
            case m.StrategyCompleted(result=result) if result.strip() != self._last_words():
                self._console.print(Text(f"\n{visible(result)}"))
            case m.StrategyError(error=error):
                line = f"\n{error.code}: {visible(error.message)}"
                self._console.print(Text(line, style="red"))
                self._console.print(Text(visible(way_on(self._state.ending))))
            case _:
                pass

    def _last_words(self) -> str:
        said = [each.text for each in self._state.calls.items if hasattr(each, "parts")]
        return said[-1].strip() if said else ""

    def _redraw(self) -> None:
        size = _terminal_size()
        shape = FrameShape(*size, opened=self._opened, back=self._back)
        lines = self._frame.lines(shape, self._editor.text, self._notice)[: size[1]]
        if self._drawn != (size, lines):
            clear = "\x1b[2J" if self._drawn is None or self._drawn[0] != size else ""
            cursor = min(size[0], cell_len(Text.from_ansi(lines[-1]).plain.rstrip()) + 1)
            if lines and Text.from_ansi(lines[-1]).plain.rstrip().endswith("›"):
                cursor += 1
            body = "\r\n".join(f"{line}\x1b[K" for line in lines)
            self._write(f"{clear}\x1b[H{body}\x1b[J\x1b[{len(lines)};{cursor}H")
            self._drawn = size, lines
        loop = asyncio.get_running_loop()
        self._next = loop.call_later(1 / _FRAMES_PER_SECOND, self._redraw)

    def _pressed(self, keys: str) -> str:
        """What is typed; the keys of the view itself are taken out."""
        step = max(1, _terminal_size()[1] // 3)
        for sequence, lines in (("\x1b[5~", step), ("\x1b[6~", -step)):
            self._back = max(0, self._back + lines * keys.count(sequence))
            keys = keys.replace(sequence, "")
        if "\t" in keys:
            self._opened = not self._opened
        asked = isinstance(self._state.prompt, m.RequestPermission)
        if asked and not self._editor.text and keys in _ANSWERS:
            return _ANSWERS[keys]
        return keys

    @staticmethod
    def _write(text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()


def _terminal_size() -> tuple[int, int]:
    """Columns and rows; a terminal that does not say has the usual ones."""
    try:
        columns, rows = os.get_terminal_size(sys.stdout.fileno())
    except OSError:
        columns, rows = 0, 0
    named = os.environ.get("COLUMNS", "")
    return columns or (int(named) if named.isdecimal() else 0) or 80, rows or 24

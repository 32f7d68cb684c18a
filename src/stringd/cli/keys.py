"""Typing below a live picture: keys without echo, edited here, handed out line by line."""

import asyncio
import codecs
import os
import sys
import termios
import time
import tty
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Self

if TYPE_CHECKING:
    from collections.abc import Callable


class TypedLine(NamedTuple):
    """A line, and when its first key was pressed, by the monotonic clock."""

    text: str
    began: float


class LineEditor:
    """The line under way. Feed it characters; it says when a line is complete."""

    def __init__(self) -> None:
        self.text = ""
        self._began: float | None = None

    def feed(self, characters: str, now: float = 0.0) -> list[TypedLine]:
        """Lines these characters completed. Escape sequences are dropped, never interpreted."""
        lines: list[TypedLine] = []
        for character in _without_escapes(characters):
            self._began = now if self._began is None else self._began
            if character in "\r\n":
                lines.append(TypedLine(self.text, self._began))
                self.text = ""
                self._began = None
            elif character in "\x7f\b":
                self.text = self.text[:-1]
            elif character == "\x15":
                self.text = ""
            elif character == "\x17":
                self.text = self.text.rstrip().rpartition(" ")[0]
            elif character.isprintable():
                self.text += character
        return lines


def _without_escapes(characters: str) -> str:
    found: list[str] = []
    rest = iter(characters)
    for character in rest:
        if character != "\x1b":
            found.append(character)
        elif next(rest, "") in "[O":
            while (end := next(rest, "")) and not end.isalpha() and end != "~":
                pass
    return "".join(found)


class Keyboard:
    """The terminal in character mode, for as long as it is entered. Ctrl-C stays a signal."""

    def __init__(self) -> None:
        self.editor = LineEditor()
        self._lines: asyncio.Queue[TypedLine | None] = asyncio.Queue()
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._fd = sys.stdin.fileno()
        self._saved: list[Any] = []
        self.translate: Callable[[str], str] = str
        """What pressed keys mean as typed text; a view takes out those that are for itself."""

    def __enter__(self) -> Self:
        self._saved = termios.tcgetattr(self._fd)
        tty.setcbreak(self._fd, termios.TCSADRAIN)
        asyncio.get_running_loop().add_reader(self._fd, self._read)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        asyncio.get_running_loop().remove_reader(self._fd)
        termios.tcsetattr(self._fd, termios.TCSADRAIN, self._saved)

    async def read_line(self) -> TypedLine | None:
        return await self._lines.get()

    def _read(self) -> None:
        data = os.read(self._fd, 4096)
        if not data or data == b"\x04":
            asyncio.get_running_loop().remove_reader(self._fd)
            self._lines.put_nowait(None)
            return
        pressed = self.translate(self._decoder.decode(data))
        for line in self.editor.feed(pressed, time.monotonic()):
            self._lines.put_nowait(line)

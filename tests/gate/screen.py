"""What a person sees: a terminal's screen, from the bytes a program wrote to it."""

import re
import unicodedata

_PIECES = re.compile(r"\x1b\[(\??[\d;]*)([A-Za-z])|\x1b([78])|([\r\n\a])|([^\x1b\r\n\a])")


class Screen:
    """As much of a terminal as the gate uses; `wide` letters take two columns."""

    def __init__(self, rows: int, columns: int, *, wide: bool = False) -> None:
        self.size = rows, columns
        self._wide = wide
        self._pages = [self._blank(), self._blank()]
        self._page = 0
        self._row = self._column = 0
        self._saved = 0, 0
        self._wraps = True

    def feed(self, text: str) -> "Screen":
        for arguments, command, save, control, letter in _PIECES.findall(text):
            if command:
                self._sequence(arguments, command)
            elif save == "7":
                self._saved = self._row, self._column
            elif save == "8":
                self._row, self._column = self._saved
            elif control:
                self._control(control)
            else:
                self._put(letter)
        return self

    @property
    def lines(self) -> list[str]:
        return ["".join(row).rstrip() for row in self._pages[self._page]]

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    def _blank(self) -> list[list[str]]:
        return [[" "] * self.size[1] for _ in range(self.size[0])]

    def _sequence(self, arguments: str, command: str) -> None:
        numbers = [int(each or 1) for each in arguments.lstrip("?").split(";")]
        page = self._pages[self._page]
        if command == "H":
            self._row, self._column = numbers[0] - 1, (numbers[1:] or [1])[0] - 1
            self._row = min(self._row, self.size[0] - 1)
        elif command == "K":
            start = 0 if arguments == "2" else self._column
            page[self._row][start:] = [" "] * (self.size[1] - start)
        elif command == "J":
            if arguments == "2":
                self._pages[self._page] = self._blank()
            else:
                page[self._row][self._column :] = [" "] * (self.size[1] - self._column)
                page[self._row + 1 :] = self._blank()[self._row + 1 :]
        elif arguments == "?1049":
            self._page = int(command == "h")
        elif arguments == "?7":
            self._wraps = command == "h"
        elif command != "m":
            assert arguments == "?2004", f"an unknown sequence: {arguments}{command}"

    def _control(self, control: str) -> None:
        if control == "\r":
            self._column = 0
        elif control == "\n":
            self._line_feed()

    def _line_feed(self) -> None:
        if self._row < self.size[0] - 1:
            self._row += 1
        else:
            self._pages[self._page] = [*self._pages[self._page][1:], [" "] * self.size[1]]

    def _put(self, letter: str) -> None:
        width = 2 if self._wide and not letter.isascii() else 1
        if unicodedata.combining(letter):
            return
        if self._column + width > self.size[1]:
            if self._wraps:
                self._column = 0
                self._line_feed()
            else:
                self._column = self.size[1] - width
        row = self._pages[self._page][self._row]
        row[self._column : self._column + width] = [letter, ""][:width]
        self._column += width

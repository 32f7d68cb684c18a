"""The line in which the person writes to the caller why."""

import codecs
from typing import Final

from stringd.gate.characters import is_clean, is_visible
from stringd.gate.display import Line, line, width_of

MAX_NOTE: Final = 200
_LABEL: Final = "→ Denied. Why? (Enter: no note) "


class NoteLine:
    """A line editor as small as can be: text, backspace, Enter, Escape."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("ignore")
        self.text = ""
        self.is_done = False

    def feed(self, data: bytes) -> None:
        """Take typed bytes."""
        for character in self._decoder.decode(data):
            if character in "\r\n\x1b" or self.is_done:
                self.text = "" if character == "\x1b" else self.text
                self.is_done = True
                break
            if character in "\x7f\x08":
                self.text = self.text[:-1]
            elif is_visible(character) and is_clean(character) and len(self.text) < MAX_NOTE:
                self.text += character


def note_row(text: str, columns: int) -> Line:
    """The note as far as it fits beside its label: the end of it, where one is typing."""
    room = max(columns - len(_LABEL) - 1, 10)
    while width_of(text) > room:
        text = text[1:]
    return line(_LABEL + text)

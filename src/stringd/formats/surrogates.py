r"""Halves of characters: JSON may hold `\ud83d` without `\ude00`, which no text may hold.

Two halves that meet are a character; one that stays alone is shown as `�`.
"""

import re
from typing import Final

_LOST: Final = "\ufffd"
_HALF: Final = re.compile("[\ud800-\udfff]")
# Whole escapes are matched one after the other, so a doubled backslash begins nothing.
_ESCAPE: Final = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    rb"|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)


def paired(text: str) -> str:
    """The text with halves that meet joined, and lone ones replaced."""
    if _HALF.search(text) is None:
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def without_lone_escapes(json_text: bytes) -> bytes:
    r"""JSON in which no `\u` escape is half a character."""
    return _ESCAPE.sub(lambda found: rb"\ufffd" if found[1] else found[0], json_text)


class HalfJoiner:
    """Text that arrives in pieces, which may be cut inside a character."""

    __slots__ = ("_first",)

    def __init__(self) -> None:
        self._first = ""

    def feed(self, piece: str) -> str:
        """What can be shown now; the first half of a character waits for the second."""
        if not piece:
            return piece
        text = self._first + piece
        if "\ud800" <= text[-1] <= "\udbff":
            self._first = text[-1]
            text = text[:-1]
        else:
            self._first = ""
        return paired(text)

    def rest(self) -> str:
        """What is left when nothing more arrives."""
        left, self._first = self._first, ""
        return _LOST if left else ""

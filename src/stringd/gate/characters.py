"""Which characters may be in a request, and which may be shown as they are. Pure.

A forbidden character refuses the whole request; nothing is stripped. Of the characters that pass,
the blank and the invisible ones are still shown by number, because a reader cannot see them.
"""

import re
from functools import cache
from typing import Final

Span = tuple[int, int]

CONTROLS: Final[tuple[Span, ...]] = (
    (0x00, 0x08),
    (0x0A, 0x1F),
    (0x7F, 0x9F),
)
# They reorder, join, hide or annotate the text around them.
FORMATS: Final[tuple[Span, ...]] = (
    (0xAD, 0xAD),
    (0x61C, 0x61C),
    (0x180E, 0x180E),
    (0x200B, 0x200F),
    (0x2028, 0x202E),
    (0x2060, 0x206F),
    (0xFEFF, 0xFEFF),
    (0xFFF9, 0xFFFB),
    (0xE0000, 0xE0FFF),
)
NONCHARACTERS: Final[tuple[Span, ...]] = (
    (0xFDD0, 0xFDEF),
    *((plane << 16 | 0xFFFE, plane << 16 | 0xFFFF) for plane in range(17)),
)
FORBIDDEN: Final = CONTROLS + FORMATS + NONCHARACTERS

# Printable by category, yet blank or without any ink of their own.
INVISIBLE: Final[tuple[Span, ...]] = (
    (0x34F, 0x34F),
    (0x115F, 0x1160),
    (0x17B4, 0x17B5),
    (0x180B, 0x180F),
    (0x2800, 0x2800),
    (0x3164, 0x3164),
    (0xFE00, 0xFE0F),
    (0xFFA0, 0xFFA0),
    (0x1BCA0, 0x1BCA3),
    (0x1D159, 0x1D159),
    (0x1D173, 0x1D17A),
)


def _character_class(spans: tuple[Span, ...]) -> re.Pattern[str]:
    parts = (f"\\U{low:08x}-\\U{high:08x}" for low, high in spans)
    return re.compile(f"[{''.join(parts)}]")


_FORBIDDEN: Final = _character_class(FORBIDDEN)
_INVISIBLE: Final = _character_class(INVISIBLE)


def cleaned(text: str) -> str:
    """The text with a question mark for every character that a request may not carry."""
    return _FORBIDDEN.sub("?", text)


def is_clean(text: str) -> bool:
    """Whether a request may carry this text in a field."""
    return _FORBIDDEN.search(text) is None


def is_visible(character: str) -> bool:
    """Whether a reader sees this character, and sees it as nothing else."""
    return character.isprintable() and _INVISIBLE.match(character) is None


def deceives(text: str) -> bool:
    """Whether text of visible characters needs a warning.

    True when scripts are mixed, for combining marks, full-width forms and right-to-left letters.
    """
    if text.isascii():
        return False
    foreign = [character for character in set(text) if not character.isascii()]
    if any(_is_deceptive(character) for character in foreign):
        return True
    scripts = {_script(character) for character in set(text) if character.isalpha()}
    return len(scripts) > 1


def _is_deceptive(character: str) -> bool:
    import unicodedata  # a megabyte that plain ASCII requests never need

    return (
        unicodedata.category(character).startswith("M")
        or unicodedata.bidirectional(character) in ("R", "AL", "AN")
        or unicodedata.east_asian_width(character) in ("F", "H")
    )


@cache
def _script(character: str) -> str:
    """The script by the first word of the character's name; Japanese and Chinese count as one."""
    import unicodedata  # see above

    name = unicodedata.name(character, "UNKNOWN").split()[0]
    return "CJK" if name in ("CJK", "HIRAGANA", "KATAKANA", "IDEOGRAPHIC", "BOPOMOFO") else name


@cache
def turns(character: str) -> bool:
    """Whether terminals may show what is around this character in another order."""
    import unicodedata  # see above

    return unicodedata.bidirectional(character) in ("R", "AL", "AN", "RLE", "RLO", "RLI")


def cells(character: str) -> int:
    """How many terminal columns a visible character may take at most.

    Terminals disagree about everything but ASCII, and Unicode widens characters in new versions.
    """
    return 1 if character.isascii() else 2


def describe(character: str) -> str:
    """A character by number and name."""
    import unicodedata  # see above

    return f"U+{ord(character):04X} {unicodedata.name(character, '(unnamed)')}"

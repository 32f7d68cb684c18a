"""Frontmatter of documents: YAML at the very top, read leniently.

Scalars follow YAML 1.2: `on`, `yes` and dates are text.
"""

import re
from typing import Final

from stringd.formats.front_matter import header_bounds, read_header
from stringd.formats.places import Value

__all__ = ["Value", "body_start", "frontmatter", "scalar"]

_INTEGER = re.compile(r"[-+]?[0-9]{1,18}")
_FLOAT = re.compile(
    r"[-+]?(?:\.[0-9]{1,40}|[0-9]{1,40}(?:\.[0-9]{0,40}|(?=[eE])))(?:[eE][-+]?[0-9]{1,2})?"
)
_WORDS: Final[dict[str, bool | None]] = {
    "true": True,
    "True": True,
    "TRUE": True,
    "false": False,
    "False": False,
    "FALSE": False,
    "null": None,
    "~": None,
    "": None,
}


def body_start(source: str) -> int:
    """Offset of the first character after the frontmatter and a byte order mark."""
    return header_bounds(source).body


def frontmatter(source: str) -> dict[str, Value]:
    """The header as a map; empty when there is none. Never raises."""
    start, end, _ = header_bounds(source)
    return read_header(source[start:end], scalar)


def scalar(text: str) -> Value:
    """What a plain, unquoted scalar means."""
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text):
        return float(text)
    return text

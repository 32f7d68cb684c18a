"""File contents as text: what the model sees, and how its text becomes bytes again."""

import difflib
from collections.abc import Iterable
from typing import Final, Literal, NamedTuple

_BOM: Final = b"\xef\xbb\xbf"
# The first block tells text from binary, as most tools do it.
_SNIFFED: Final = 8192
# Comparing line by line takes quadratic time; past this nobody reads it anyway.
_MAX_DIFF_LINES: Final = 20_000
MAX_DIFF: Final = 64 * 1024

NewlineStyle = Literal["lf", "crlf", "mixed"]


class DecodedText(NamedTuple):
    """Text with LF newlines and without BOM, and what to put back when it is written."""

    text: str
    newlines: NewlineStyle
    bom: bool

    def encode(self, text: str) -> bytes:
        """New text in the form of the old."""
        if self.newlines == "crlf":
            text = text.replace("\r\n", "\n").replace("\n", "\r\n")
        return (_BOM if self.bom else b"") + text.encode("utf-8", "surrogateescape")


def is_binary(data: bytes) -> bool:
    return b"\0" in data[:_SNIFFED]


def decode(data: bytes) -> DecodedText:
    """Bytes as text. Bytes that are not UTF-8 come through unharmed."""
    bom = data.startswith(_BOM)
    text = (data[3:] if bom else data).decode("utf-8", "surrogateescape")
    crlf = text.count("\r\n")
    if crlf and crlf == text.count("\n"):
        return DecodedText(text.replace("\r\n", "\n"), "crlf", bom)
    return DecodedText(text, "mixed" if crlf else "lf", bom)


def shown(text: str) -> str:
    """Text a JSON message can carry: bytes that were not UTF-8 become a visible mark."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def diff(before: str, after: str, path: str) -> str:
    """A unified diff, cut when it is long."""
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    if len(old) + len(new) > _MAX_DIFF_LINES:
        return f"(a change of {len(old)} to {len(new)} lines, too long to show)"
    lines = [
        line if line.endswith("\n") else line + "\n\\ No newline at end of file\n"
        for line in difflib.unified_diff(old, new, f"a/{path}", f"b/{path}")
    ]
    text = shown("".join(lines))
    return text if len(text) <= MAX_DIFF else text[:MAX_DIFF] + "\n… (cut)"


def replacing(pieces: Iterable[tuple[str, str]]) -> str:
    """Pieces of text and what takes their place as a diff without line numbers, cut when long."""
    parts = []
    for old, new in pieces:
        parts += ["@@", *_marked("-", old), *_marked("+", new)]
    text = shown("\n".join(parts))
    return text if len(text) <= MAX_DIFF else text[:MAX_DIFF] + "\n… (cut)"


def _marked(sign: str, text: str) -> list[str]:
    return [sign + line for line in text.removesuffix("\n").split("\n")] if text else []

"""Views of source text: numbered for editing, a preview for checking."""

from typing import Final

from stringd.documents.edits import line_count

PREVIEW: Final = 200


def numbered(text: str, first: int = 1) -> str:
    """Every line with its number, then a blank line and the count."""
    count = line_count(text)
    width = len(str(first + count - 1))
    lines = text.replace("\r\n", "\n").split("\n")
    rows = [f"{number:>{width}} | {line}" for number, line in enumerate(lines, first)]
    return "\n".join([*rows, "", f"({count} lines)"])


def preview(text: str) -> str:
    """The first characters of a text, marked when cut."""
    return text if len(text) <= PREVIEW else text[:PREVIEW] + "..."

"""Views of source text: numbered for editing, a preview for checking."""

from typing import Final

from stringd.documents.edits import line_count

PREVIEW: Final = 200


def numbered(text: str, first: int = 1, max_lines: int | None = None) -> str:
    """Lines with their numbers, as many as may be shown, then a blank line and the count."""
    count = line_count(text)
    shown = count if max_lines is None else min(count, max_lines)
    width = len(str(first + shown - 1))
    lines = text.replace("\r\n", "\n").split("\n")[:shown]
    rows = [f"{number:>{width}} | {line}" for number, line in enumerate(lines, first)]
    if shown < count:
        rows.append(f"... ({count - shown} more lines, truncated at {shown} lines)")
    return "\n".join([*rows, "", f"({count} lines)"])


def preview(text: str) -> str:
    """The first characters of a text, marked when cut."""
    return text if len(text) <= PREVIEW else text[:PREVIEW] + "..."

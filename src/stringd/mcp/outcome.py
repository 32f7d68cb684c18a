"""What a tool call comes to, and refusals that are outcomes too."""

from typing import Final, NamedTuple

MAX_CHARACTERS: Final = 200_000
"""More than this in one part helps no model, and clients refuse events of a megabyte."""


class ToolOutcome(NamedTuple):
    """The text parts of a tool's result."""

    parts: tuple[str, ...]
    is_error: bool = False


class ToolError(Exception):
    """A call that cannot be done as asked; the text tells the model why and what to do."""


def said(*parts: str) -> ToolOutcome:
    """A good outcome."""
    return ToolOutcome(parts)


def failed(text: str) -> ToolOutcome:
    """A bad outcome."""
    return ToolOutcome((text,), is_error=True)


def shortened(text: str) -> str:
    """Text of a bearable size: its beginning and its end, and between them what is missing."""
    if len(text) <= MAX_CHARACTERS:
        return text
    half = MAX_CHARACTERS // 2
    left_out = len(text) - 2 * half
    note = f"[… {left_out} characters left out here; ask for a smaller part to read them …]"
    return f"{text[:half]}\n{note}\n{text[-half:]}"

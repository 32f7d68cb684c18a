"""What a tool call comes to, and refusals that are outcomes too."""

from typing import NamedTuple


class Outcome(NamedTuple):
    """The text parts of a tool's result."""

    parts: tuple[str, ...]
    is_error: bool = False


class ToolError(Exception):
    """A call that cannot be done as asked; the text tells the model why and what to do."""


def said(*parts: str) -> Outcome:
    """A good outcome."""
    return Outcome(parts)


def failed(text: str) -> Outcome:
    """A bad outcome."""
    return Outcome((text,), is_error=True)

"""What the values of a file may be, where they are in it, and how far a parser follows them."""

from collections.abc import Callable
from typing import Final, NamedTuple, TypeAlias

from stringd.formats.shapes import Path

# Aliases let a short file name a huge value; nobody writes this many by hand.
MAX_VALUES: Final = 100_000
MAX_DEPTH: Final = 64


Value: TypeAlias = "str | int | float | bool | list[Value] | dict[str, Value] | None"
Scalar: TypeAlias = Callable[[str], Value]
"""What a plain, unquoted scalar means."""


class SourcePlace(NamedTuple):
    line: int
    column: int


Places = dict[Path, SourcePlace]


class SourceSyntaxError(Exception):
    """The text is not the format it claims to be."""

    def __init__(self, problem: str, place: SourcePlace | None) -> None:
        super().__init__(problem)
        self.problem = problem
        self.place = place

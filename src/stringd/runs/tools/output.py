"""What came of a tool call, and why it came to nothing."""

from collections.abc import Mapping
from typing import Any, NamedTuple


class ToolProblem(NamedTuple):
    """Why a tool could not do what it was asked. `kind` is one of a fixed list of words."""

    kind: str
    message: str
    path: str | None = None
    details: Mapping[str, Any] | None = None
    recoverable: bool = True
    next_step: str | None = None


class ToolOutput(NamedTuple):
    """What came of a call. The model reads `output` alone; `data` is for code around the run.

    A tool that failed says so in `output`; that is not an error of the loop.
    """

    output: str
    ok: bool = True
    data: Mapping[str, Any] | None = None
    error: ToolProblem | None = None


class ToolBrokenError(Exception):
    """The call could not be executed at all; the model gets the text as an error."""


class ToolFailure(Exception):  # noqa: N818  # an answer to the model, raised from deep inside
    """The tool cannot do it; the model reads why and what to try next."""

    def __init__(
        self,
        kind: str,
        message: str,
        *,
        path: str | None = None,
        details: Mapping[str, Any] | None = None,
        recoverable: bool = True,
        next_step: str | None = None,
    ) -> None:
        super().__init__(message)
        self.problem = ToolProblem(kind, message, path, details, recoverable, next_step)

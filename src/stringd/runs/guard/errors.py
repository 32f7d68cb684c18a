"""Why something was not allowed."""

from typing import Literal


class Denied(Exception):  # noqa: N818  # an answer, told to the model; no failure of ours
    """Not allowed. `kind` is the tool error the model reads."""

    def __init__(
        self,
        message: str,
        kind: Literal["permission_denied", "outside_workspace"] = "permission_denied",
    ) -> None:
        super().__init__(message)
        self.kind = kind

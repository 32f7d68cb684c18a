"""The states of a run, for those who need nothing else of its protocol."""

from typing import Literal

RunStatus = Literal["pending", "running", "completed", "error", "cancelled"]

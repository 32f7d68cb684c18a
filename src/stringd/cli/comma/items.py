"""What an import finds, and what becomes of it."""

from pathlib import Path
from typing import Final, Literal, NamedTuple

Kind = Literal["strategies", "skills", "packages", "servers", "keys", "runs"]
KINDS: Final[tuple[Kind, ...]] = ("strategies", "skills", "packages", "servers", "keys", "runs")
"""In the order of an import: a run is continued with a strategy that is here by then."""
Outcome = Literal["imported", "present", "kept", "refused"]
"""Taken over; here already with the same content; left as it is here, where it differs; unusable
here. The note says more."""


class ImportItem(NamedTuple):
    """One thing of Comma's, and what becomes of it here."""

    kind: Kind
    name: str
    outcome: Outcome
    note: str = ""


class ImportPlan(NamedTuple):
    """From where to where; `dry` only looks, `replace` prefers what Comma has."""

    source: Path
    data: Path
    dry: bool = False
    replace: bool = False


class ImportFailedError(Exception):
    """Nothing can be imported; the text says why."""

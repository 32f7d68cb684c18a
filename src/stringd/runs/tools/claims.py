"""Which calls of one answer wait for each other: those that use the same file or state."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from stringd.runs.guard.errors import Denied
from stringd.runs.guard.workspace import Workspace
from stringd.runs.tools.tool import Tool


class Claims(NamedTuple):
    """What a call uses: real paths, with everything below them, and a state it shares."""

    reads: tuple[Path, ...] = ()
    writes: tuple[Path, ...] = ()
    state: str | None = None

    def after(self, earlier: "Claims") -> bool:
        """Whether a call must wait until an earlier one of the same answer has ended."""
        if self.state is not None and self.state == earlier.state:
            return True
        return _meet(self.writes, (*earlier.reads, *earlier.writes)) or _meet(
            self.reads, earlier.writes
        )


def _meet(some: tuple[Path, ...], others: tuple[Path, ...]) -> bool:
    return any(
        one == other or one in other.parents or other in one.parents
        for one in some
        for other in others
    )


def claims_of(tool: Tool | None, args: Mapping[str, Any] | None, workspace: Workspace) -> Claims:
    """What a call uses, as far as its tool says; a tool that does not say it waits for nobody."""
    if tool is None or args is None:
        return Claims()
    state = getattr(tool, "shared_state", None)
    return Claims(
        _places(getattr(tool, "reads_paths", ()), args, workspace),
        _places(getattr(tool, "writes_paths", ()), args, workspace),
        state(args) if state is not None else None,
    )


def _places(
    names: tuple[str, ...], args: Mapping[str, Any], workspace: Workspace
) -> tuple[Path, ...]:
    """Where these arguments lead; one that is left out, and `.`, mean the whole workspace."""
    found = []
    for name in names:
        text = args.get(name) or "."
        try:
            found.append(workspace.place(text if isinstance(text, str) else ".").real)
        except Denied:
            # The tool itself will say so.
            continue
    return tuple(found)

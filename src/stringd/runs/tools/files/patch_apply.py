"""Where the hunks of a patch apply in a text. Pure: text and hunks in, new text or a reason out."""

from collections.abc import Callable, Sequence
from typing import Final

from stringd.runs.tools.files.patch_text import Hunk
from stringd.runs.tools.output import ToolFailure

# The ways in which lines may differ and still be meant, from the strictest on.
_LIKENESS: Final[tuple[Callable[[str], str], ...]] = (str, str.rstrip, str.strip)
_SHOWN_LINES: Final = 12


def apply_hunks(text: str, hunks: Sequence[Hunk], path: str) -> str:
    """The text with every hunk applied, in order. Raises `ToolFailure`."""
    lines = text.split("\n")
    newline = lines[-1] == ""
    if newline:
        lines.pop()
    new: list[str] = []
    at = 0
    for number, hunk in enumerate(hunks, 1):
        start = _find(lines, hunk, at, number, path)
        new += lines[at:start]
        at = start
        for sign, wanted in hunk.lines:
            if sign == "+":
                new.append(wanted)
                continue
            if sign == " ":
                # What is kept is the file's own line, however the patch spells it.
                new.append(lines[at])
            at += 1
        if hunk.newline_at_end is not None and at == len(lines):
            newline = hunk.newline_at_end
    new += lines[at:]
    return "\n".join(new) + ("\n" if newline and new else "")


def _find(lines: list[str], hunk: Hunk, at: int, number: int, path: str) -> int:
    """The line a hunk begins at. Raises `ToolFailure`."""
    begin = _after_anchors(lines, hunk, at, number, path)
    old = hunk.old
    if not old:
        return _insertion(lines, hunk, begin)
    for likeness in _LIKENESS:
        found = _matches([likeness(line) for line in lines], [likeness(w) for w in old], begin)
        if hunk.at_end:
            found = [start for start in found if start + len(old) == len(lines)] or found[-1:]
        if found:
            return _choose(found, hunk, number, path)
    raise ToolFailure(
        "old_text_not_found",
        f"Hunk {number}: these lines are not in {path}"
        + (f" after line {begin}" if begin else "")
        + ":\n"
        + "\n".join(old[:_SHOWN_LINES]),
        path=path,
        details={"hunk": number},
        next_step="read the file again and copy its lines exactly; nothing was changed",
    )


def _matches(lines: list[str], wanted: list[str], begin: int) -> list[int]:
    first, size = wanted[0], len(wanted)
    return [
        start
        for start in range(begin, len(lines) - size + 1)
        if lines[start] == first and lines[start : start + size] == wanted
    ]


def _choose(found: list[int], hunk: Hunk, number: int, path: str) -> int:
    if hunk.line is not None:
        wanted = hunk.line - 1
        return min(found, key=lambda start: abs(start - wanted))
    if len(found) == 1 or hunk.anchors:
        return found[0]
    shown = ", ".join(str(start + 1) for start in found[:10])
    raise ToolFailure(
        "multiple_matches",
        f"Hunk {number}: its lines are {len(found)} times in {path} (lines {shown})",
        path=path,
        details={"hunk": number, "matches": len(found)},
        next_step="add more lines around it, or @@ and a line that comes before; nothing was "
        "changed",
    )


def _after_anchors(lines: list[str], hunk: Hunk, at: int, number: int, path: str) -> int:
    """Behind the lines that `@@` names, those with hints for people left alone."""
    for anchor in hunk.anchors:
        if hunk.line is not None:
            return at
        places = [n for n in range(at, len(lines)) if lines[n].strip() == anchor.strip()]
        if not places:
            raise ToolFailure(
                "old_text_not_found",
                f"Hunk {number}: the line {anchor!r} of @@ is not in {path}",
                path=path,
                details={"hunk": number},
                next_step="copy a whole line of the file behind @@; nothing was changed",
            )
        at = places[0] + 1
    return at


def _insertion(lines: list[str], hunk: Hunk, begin: int) -> int:
    """Where lines go that have none around them."""
    if hunk.line is not None:
        return max(begin, min(hunk.line, len(lines)))
    return begin if hunk.anchors and not hunk.at_end else len(lines)

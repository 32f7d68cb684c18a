"""The text of a patch: unified diffs as tools write them, or the `*** Begin Patch` form.

Models miscount lines and wrap patches in fences, so counts are hints and wrappers are taken off.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, Literal

from stringd.runs.tools.output import ToolFailure

Sign = Literal[" ", "-", "+"]

_BEGIN: Final = "*** Begin Patch"
_END: Final = "*** End Patch"
_SECTION: Final = re.compile(r"\*\*\* (Add|Update|Delete) File: (.+?)\s*$")
_MOVE: Final = re.compile(r"\*\*\* Move to: (.+?)\s*$")
_RANGE: Final = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@(?: ?(.*))?$")
_NOTHING: Final = "/dev/null"
_NO_NEWLINE: Final = "\\ No newline"


@dataclass
class Hunk:
    """Lines to find and what becomes of them.

    `line` is where the first of them was, counted from 1; `anchors` are lines that come before.
    """

    lines: list[tuple[Sign, str]] = field(default_factory=list)
    line: int | None = None
    anchors: list[str] = field(default_factory=list)
    at_end: bool = False
    newline_at_end: bool | None = None

    @property
    def old(self) -> list[str]:
        return [text for sign, text in self.lines if sign != "+"]


@dataclass
class FilePatch:
    """What happens to one file; `to_path` is its new name."""

    operation: Literal["create", "update", "delete"]
    path: str
    hunks: list[Hunk] = field(default_factory=list)
    to_path: str | None = None

    @property
    def content(self) -> str:
        """What a new file holds."""
        lines = [text for hunk in self.hunks for sign, text in hunk.lines if sign == "+"]
        bare = any(hunk.newline_at_end is False for hunk in self.hunks)
        return "\n".join(lines) + ("" if bare or not lines else "\n")


def parse_patch(text: str) -> list[FilePatch]:
    """The files a patch changes, in order. Raises `ToolFailure`."""
    lines = text.replace("\r\n", "\n").split("\n")
    begin = next((at for at, line in enumerate(lines) if line.strip() == _BEGIN), None)
    found = _envelope(lines[begin + 1 :]) if begin is not None else _Unified(lines).files()
    if not found:
        raise bad_patch("it changes no file")
    return found


def bad_patch(problem: str) -> ToolFailure:
    return ToolFailure(
        "invalid_patch",
        f"The patch cannot be read: {problem}",
        next_step='send a unified diff (---, +++, @@), or "*** Begin Patch" with "*** Update File: '
        'path", "@@" and lines that begin with a space, - or +, and "*** End Patch"',
    )


def _envelope(lines: list[str]) -> list[FilePatch]:
    found: list[FilePatch] = []
    for line in lines:
        section, move = _SECTION.match(line), _MOVE.match(line)
        if line.strip() == _END:
            return found
        if section is not None:
            kinds: dict[str, Literal["create", "update", "delete"]] = {
                "Add": "create",
                "Update": "update",
                "Delete": "delete",
            }
            found.append(FilePatch(kinds[section[1]], section[2]))
        elif not found:
            if line.strip():
                raise bad_patch(f"{line[:80]!r} comes before the first file")
        elif move is not None:
            found[-1].to_path = move[1]
        else:
            _envelope_line(found[-1], line)
    raise bad_patch(f"{_END!r} is missing, so a part may be")


def _envelope_line(file: FilePatch, line: str) -> None:
    if line.startswith("*** End of File"):
        if file.hunks:
            file.hunks[-1].at_end = True
    elif line.startswith("@@"):
        ranged = _RANGE.match(line)
        anchor = (ranged[5] or "") if ranged else line[2:].strip().removesuffix("@@").strip()
        last = file.hunks[-1] if file.hunks else None
        if last is None or last.lines:
            last = Hunk()
            file.hunks.append(last)
        last.line = int(ranged[1]) if ranged else None
        last.anchors += [anchor] if anchor else []
    elif file.operation == "delete":
        if line.strip():
            raise bad_patch(f"{line[:80]!r} follows the deletion of {file.path}")
    else:
        if not file.hunks:
            file.hunks.append(Hunk())
        if file.operation == "create" and not line.startswith("+"):
            raise bad_patch(f"lines of the new file {file.path} begin with +, not {line[:80]!r}")
        _content_line(file.hunks[-1], line, file.path)


def _content_line(hunk: Hunk, line: str, path: str) -> None:
    if line.startswith(_NO_NEWLINE):
        sign = hunk.lines[-1][0] if hunk.lines else " "
        if sign == "-":
            hunk.newline_at_end = True
        else:
            hunk.newline_at_end = False
    elif line[:1] == "+":
        hunk.lines.append(("+", line[1:]))
    elif line[:1] == "-":
        hunk.lines.append(("-", line[1:]))
    elif line[:1] in (" ", ""):
        # An empty line lost the space that marks it.
        hunk.lines.append((" ", line[1:]))
    else:
        raise bad_patch(f"a line of {path} begins neither with a space nor + nor -: {line[:80]!r}")


class _Unified:
    """Reads unified diffs, those of git included."""

    def __init__(self, lines: list[str]) -> None:
        self._lines = lines
        self._at = 0

    def files(self) -> list[FilePatch]:
        return list(self._files())

    def _files(self) -> Iterator[FilePatch]:
        renamed: dict[str, str] = {}
        while self._at < len(self._lines):
            line = self._lines[self._at]
            if line.startswith(("Binary files ", "GIT binary patch")):
                raise bad_patch("it holds a binary file")
            if line.startswith(("rename from ", "rename to ")):
                renamed[line.split(" ", 2)[1]] = line.split(" ", 2)[2].strip()
            if line.startswith("diff --git "):
                yield from _only_renamed(renamed)
                renamed = {}
            if self._is_header(self._at):
                yield self._file(renamed)
                renamed = {}
            elif line.startswith("@@"):
                raise bad_patch("@@ comes before the names of the file (--- and +++)")
            else:
                self._at += 1
        yield from _only_renamed(renamed)

    def _is_header(self, at: int) -> bool:
        lines = self._lines
        return at + 1 < len(lines) and lines[at].startswith("--- ") and lines[at + 1][:4] == "+++ "

    def _file(self, renamed: dict[str, str]) -> FilePatch:
        old, new = (_name(self._lines[self._at + n]) for n in (0, 1))
        self._at += 2
        if old.startswith("a/") and new.startswith("b/"):
            old, new = old[2:], new[2:]
        elif old == _NOTHING:
            new = new.removeprefix("b/")
        elif new == _NOTHING:
            old = old.removeprefix("a/")
        hunks = list(self._hunks(new if old == _NOTHING else old))
        if old == _NOTHING:
            return FilePatch("create", new, hunks)
        if new == _NOTHING:
            return FilePatch("delete", old, hunks)
        target = renamed.get("to") or (new if new != old else None)
        return FilePatch("update", old, hunks, target)

    def _hunks(self, path: str) -> Iterator[Hunk]:
        while self._at < len(self._lines) and self._lines[self._at].startswith("@@"):
            ranged = _RANGE.match(self._lines[self._at])
            if ranged is None:
                raise bad_patch(f"{self._lines[self._at][:80]!r} is not the head of a hunk")
            self._at += 1
            hunk = Hunk(line=int(ranged[1]))
            left = [int(ranged[2] or 1), int(ranged[4] or 1)]
            self._hunk_lines(hunk, left, path)
            yield hunk

    def _hunk_lines(self, hunk: Hunk, left: list[int], path: str) -> None:
        """Lines up to what cannot belong to the hunk; `left` is what its head promises."""
        while self._at < len(self._lines):
            line, over = self._lines[self._at], left[0] <= 0 and left[1] <= 0
            if line.startswith(_NO_NEWLINE):
                _content_line(hunk, line, path)
                self._at += 1
                continue
            if line.startswith(("@@ -", "diff --git ", "```")) or (over and not line.strip()):
                return
            if self._is_header(self._at) and (over or self._has_hunk(self._at + 2)):
                return
            if line[:1] not in (" ", "+", "-", "") or (line == "" and self._is_last()):
                return
            _content_line(hunk, line, path)
            left[0] -= line[:1] != "+"
            left[1] -= line[:1] != "-"
            self._at += 1

    def _has_hunk(self, at: int) -> bool:
        return at < len(self._lines) and self._lines[at].startswith("@@ -")

    def _is_last(self) -> bool:
        return not any(line.strip() for line in self._lines[self._at :])


def _only_renamed(renamed: dict[str, str]) -> Iterator[FilePatch]:
    if len(renamed) == 2:
        yield FilePatch("update", renamed["from"], [], renamed["to"])


def _name(line: str) -> str:
    """The name in a `---` or `+++` line, without the time some tools put behind a tab."""
    name = line[4:].split("\t", 1)[0].strip()
    if name.startswith('"') and name.endswith('"'):
        raise bad_patch(f"the name {name} is quoted; send it as it is")
    return name

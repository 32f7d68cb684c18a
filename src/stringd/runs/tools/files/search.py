"""`search_files`: by path, by text or by regular expression."""

import asyncio
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, Literal

from msgspec import Meta

from stringd.runs.guard import globs
from stringd.runs.guard.errors import Denied
from stringd.runs.guard.workspace import WorkspacePath
from stringd.runs.tools.base import Arguments, BuiltInTool
from stringd.runs.tools.context import ToolContext
from stringd.runs.tools.files import disk, pattern, text
from stringd.runs.tools.files.list import check_folder
from stringd.runs.tools.files.walk import MAX_DEPTH, Entry, excluded, walk
from stringd.runs.tools.output import ToolFailure, ToolOutput

_MAX_FILE: Final = 4 * 1024 * 1024
_MAX_PREVIEW: Final = 400
_SECONDS: Final = 30.0


class SearchArguments(Arguments, frozen=True):
    query: Annotated[str, Meta(min_length=1)]
    mode: Literal["path", "text", "regex"]
    root: str | None = None
    include_globs: list[str] | None = None
    exclude_globs: list[str] | None = None
    max_results: Annotated[int, Meta(ge=1)] | None = None
    context_lines: Annotated[int, Meta(ge=0, le=50)] | None = None


@dataclass
class _FoundLine:
    """Shared with the searching thread, so that what was found is kept when time is up."""

    matches: list[dict[str, Any]] = field(default_factory=list)
    scanned: int = 0
    truncated: bool = False
    stop: threading.Event = field(default_factory=threading.Event)


class SearchFiles(BuiltInTool[SearchArguments]):
    name = "search_files"
    description = (
        "Search the workspace: file paths, plain text or a regular expression in contents."
    )
    takes = SearchArguments
    reads_paths = ("root",)
    repeatable = True
    effect = "reads"

    async def run(self, args: SearchArguments, context: ToolContext) -> ToolOutput:
        root = await self.place(context, "read", args.root or ".")
        check_folder(root)
        found = _FoundLine()
        try:
            async with asyncio.timeout(_SECONDS):
                if args.mode == "regex":
                    await self._search_pattern(args, context, root, found)
                else:
                    await asyncio.to_thread(self._search, args, context, root, found)
        except TimeoutError:
            found.truncated = True
        except globs.GlobError as error:
            raise ToolFailure("command_failed", str(error)) from None
        finally:
            found.stop.set()
        return _answer(args, root, found)

    async def _search_pattern(
        self, args: SearchArguments, context: ToolContext, root: WorkspacePath, found: _FoundLine
    ) -> None:
        limit = args.max_results or 100
        entries = await asyncio.to_thread(lambda: list(self._files(args, context, root)))
        sizes = [entry for entry in entries if entry.size <= _MAX_FILE]
        found.scanned = len(entries)
        hits = await pattern.find(args.query, [entry.place.real for entry in sizes], limit + 1)
        found.truncated = len(hits) > limit
        for hit in hits[:limit]:
            entry = sizes[hit.file]
            lines = await asyncio.to_thread(_lines, entry)
            if hit.line < len(lines):
                found.matches.append(_hit(args, entry, lines, hit.line, hit.column))

    def _search(
        self, args: SearchArguments, context: ToolContext, root: WorkspacePath, found: _FoundLine
    ) -> None:
        limit = args.max_results or 100
        for entry in self._files(args, context, root):
            if found.stop.is_set():
                return
            found.scanned += 1
            for match in _in_entry(args, entry):
                if len(found.matches) >= limit:
                    found.truncated = True
                    return
                found.matches.append(match)

    def _files(
        self, args: SearchArguments, context: ToolContext, root: WorkspacePath
    ) -> Iterator[Entry]:
        permissions = context.desk.permissions
        left_out = None if args.exclude_globs is None else tuple(args.exclude_globs)

        def enter(entry: Entry) -> bool:
            return not excluded(entry.below, left_out) and permissions.can_access(
                self.name, entry.place, root
            )

        for entry in walk(permissions.workspace, root, max_depth=MAX_DEPTH, enter=enter):
            wanted = args.include_globs is None or any(
                globs.matches(pattern, entry.below) for pattern in args.include_globs
            )
            if entry.type == "file" and wanted:
                yield entry


def _in_entry(args: SearchArguments, entry: Entry) -> Iterator[dict[str, Any]]:
    if args.mode == "path":
        if args.query in entry.below:
            yield {"path": entry.place.shown, "preview": entry.below}
        return
    lines = _lines(entry)
    for index, line in enumerate(lines):
        column = line.find(args.query)
        if column >= 0:
            yield _hit(args, entry, lines, index, column)


def _hit(
    args: SearchArguments, entry: Entry, lines: list[str], index: int, column: int
) -> dict[str, Any]:
    around = args.context_lines or 0
    block = lines[max(0, index - around) : index + around + 1]
    return {
        "path": entry.place.shown,
        "line": index + 1,
        "column": column + 1,
        "preview": "\n".join(text.shown(each)[:_MAX_PREVIEW] for each in block),
    }


def _lines(entry: Entry) -> list[str]:
    if entry.size > _MAX_FILE:
        return []
    try:
        data = disk.read(entry.place).data
    except (OSError, ToolFailure, Denied):
        return []
    if text.is_binary(data):
        return []
    return text.decode(data).text.replace("\r\n", "\n").split("\n")


def _answer(args: SearchArguments, root: WorkspacePath, found: _FoundLine) -> ToolOutput:
    lines = [
        f"{m['path']}:{m['line']}:{m['column']}: {m['preview']}" if "line" in m else str(m["path"])
        for m in found.matches
    ] or ["No matches."]
    if found.truncated:
        lines.append("(more matches were left out)")
    data = {
        "mode": args.mode,
        "query": args.query,
        "root": root.shown,
        "matches": list(found.matches),
        "truncated": found.truncated,
        "filesScanned": found.scanned,
    }
    return ToolOutput("\n".join(lines), data=data)

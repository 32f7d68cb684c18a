"""`list_directory` and `glob`."""

import asyncio
from collections.abc import Iterator
from itertools import islice
from typing import Annotated, Any, Final

from msgspec import Meta

from stringd.runs.guard import globs
from stringd.runs.guard.workspace import WorkspacePath
from stringd.runs.tools.base import Arguments, BuiltInTool
from stringd.runs.tools.context import ToolContext
from stringd.runs.tools.files.walk import MAX_DEPTH, Entry, excluded, walk
from stringd.runs.tools.output import ToolFailure, ToolOutput
from stringd.system.clock import timestamp

_MAX_ENTRIES: Final = 5000
_ORDER: Final = {"directory": 0, "file": 1, "symlink": 2}


class ListDirectoryArguments(Arguments, frozen=True):
    path: str
    recursive: bool | None = None
    max_depth: Annotated[int, Meta(ge=1)] | None = None
    include_hidden: bool | None = None


class ListDirectory(BuiltInTool[ListDirectoryArguments]):
    name = "list_directory"
    description = "List a folder, with everything below it when recursive."
    takes = ListDirectoryArguments
    reads_paths = ("path",)
    repeatable = True
    effect = "reads"

    async def run(self, args: ListDirectoryArguments, context: ToolContext) -> ToolOutput:
        place = await self.place(context, "read", args.path)
        check_folder(place)
        depth = min(args.max_depth or 8, MAX_DEPTH) if args.recursive else 1

        def enter(entry: Entry) -> bool:
            hidden = entry.name.startswith(".") and not args.include_hidden
            return not hidden and context.desk.permissions.can_access(self.name, entry.place, place)

        def find() -> list[Entry]:
            workspace = context.desk.permissions.workspace
            found = walk(workspace, place, max_depth=depth, enter=enter)
            return list(islice(found, _MAX_ENTRIES + 1))

        entries = await asyncio.to_thread(find)
        return _listing(place, entries)


def _listing(place: WorkspacePath, entries: list[Entry]) -> ToolOutput:
    truncated = len(entries) > _MAX_ENTRIES
    kept = sorted(entries[:_MAX_ENTRIES], key=lambda e: (e.depth, _ORDER[e.type], e.name))
    lines = [f"{place.shown}/ ({len(kept)} entries{', truncated' if truncated else ''})"]
    marks = {"directory": "/", "symlink": "@", "file": ""}
    for entry in kept:
        size = f" ({entry.size} bytes)" if entry.type == "file" else ""
        lines.append(f"{entry.below}{marks[entry.type]}{size}")
    data = {"entries": [_shape(entry) for entry in kept], "truncated": truncated}
    return ToolOutput("\n".join(lines), data=data)


def _shape(entry: Entry) -> dict[str, Any]:
    return {
        "name": entry.name,
        "relativePath": entry.below,
        "type": entry.type,
        "size": entry.size,
        "mtime": timestamp(entry.mtime),
        "depth": entry.depth,
    }


def check_folder(place: WorkspacePath) -> None:
    """Raises `ToolFailure` when there is no folder to look into."""
    if not place.real.is_dir():
        raise ToolFailure(
            "not_found",
            f"No such directory: {place.shown}",
            path=place.shown,
            next_step="list the folder above it",
        )


class GlobArguments(Arguments, frozen=True):
    pattern: Annotated[str, Meta(min_length=1, description="relative to root")]
    root: str | None = None
    exclude_globs: list[str] | None = None
    max_results: Annotated[int, Meta(ge=1)] | None = None


class Glob(BuiltInTool[GlobArguments]):
    name = "glob"
    description = "Find files by a pattern such as src/**/*.py."
    takes = GlobArguments
    reads_paths = ("root",)
    repeatable = True
    effect = "reads"

    async def run(self, args: GlobArguments, context: ToolContext) -> ToolOutput:
        root = await self.place(context, "read", args.root or ".")
        check_folder(root)
        limit = args.max_results or 1000
        try:
            found = await asyncio.to_thread(self._find, args, context, root, limit + 1)
        except globs.GlobError as error:
            raise ToolFailure("command_failed", str(error)) from None
        truncated = len(found) > limit
        matches = [
            {
                "path": _named(root, entry),
                "type": entry.type,
                "size": entry.size,
                "mtime": timestamp(entry.mtime),
            }
            for entry in found[:limit]
        ]
        lines = [str(match["path"]) for match in matches] or ["No matches."]
        data = {"pattern": args.pattern, "root": root.shown, "matches": matches}
        more = ["(more matches were left out)"] if truncated else []
        return ToolOutput("\n".join(lines + more), data={**data, "truncated": truncated})

    def _find(
        self, args: GlobArguments, context: ToolContext, root: WorkspacePath, limit: int
    ) -> list[Entry]:
        permissions = context.desk.permissions
        patterns = None if args.exclude_globs is None else tuple(args.exclude_globs)

        def enter(entry: Entry) -> bool:
            return not excluded(entry.below, patterns) and permissions.can_access(
                self.name, entry.place, root
            )

        def fitting() -> Iterator[Entry]:
            for entry in walk(permissions.workspace, root, max_depth=MAX_DEPTH, enter=enter):
                if globs.matches(args.pattern, entry.below):
                    yield entry

        return list(islice(fitting(), limit))


def _named(root: WorkspacePath, entry: Entry) -> str:
    """A found path as the model should say it: relative to the workspace when inside."""
    return entry.below if root.inside == globs.ROOT else f"{root.shown}/{entry.below}"

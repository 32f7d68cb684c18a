"""`create_file` and `write_file`."""

import asyncio
from typing import Annotated

from msgspec import Meta

from stringd.runs.guard.workspace import WorkspacePath
from stringd.runs.tools.base import Arguments, BuiltInTool
from stringd.runs.tools.context import ToolContext
from stringd.runs.tools.files import disk, text
from stringd.runs.tools.files.changes import recorded
from stringd.runs.tools.output import ToolFailure, ToolOutput

FilePath = Annotated[str, Meta(min_length=1)]
Sha256 = Annotated[
    str, Meta(pattern="^[0-9a-f]{64}$", description="from read_file: 64 lower-case hex digits")
]


class CreateFileArguments(Arguments, frozen=True):
    path: FilePath
    content: str
    create_parent_directories: bool | None = None


class CreateFile(BuiltInTool[CreateFileArguments]):
    name = "create_file"
    description = "Create a new file. Never overwrites one."
    takes = CreateFileArguments
    writes_paths = ("path",)

    async def run(self, args: CreateFileArguments, context: ToolContext) -> ToolOutput:
        changes = text.replacing([("", args.content)])
        place = await self.place(context, "write", args.path, changes)
        data = args.content.encode("utf-8", "replace")
        with recorded(context, self.name, "create", place) as event:
            parents = bool(args.create_parent_directories)
            await asyncio.to_thread(_create, place, data, parents=parents)
            event.after_sha256 = disk.sha256(data)
            event.diff = await asyncio.to_thread(text.diff, "", args.content, place.shown)
        return ToolOutput(
            f"Created {place.shown} ({len(data)} bytes, sha256 {event.after_sha256})",
            data={
                "created": True,
                "path": place.shown,
                "sha256": event.after_sha256,
                "sizeBytes": len(data),
                "diff": event.diff,
            },
        )


def _create(place: WorkspacePath, data: bytes, *, parents: bool) -> None:
    if disk.is_there(place):
        raise disk.exists(place)
    if parents:
        disk.make_parents(place)
    elif not place.real.parent.is_dir():
        raise ToolFailure(
            "not_found",
            f"The folder of {place.shown} does not exist",
            path=place.shown,
            next_step="pass createParentDirectories",
        )
    disk.create(place, data)


def check_hash(place: WorkspacePath, content: disk.HashedContent, expected: str | None) -> None:
    """Raises `ToolFailure` when the file is not the one that was read."""
    if expected is not None and expected != content.sha256:
        raise ToolFailure(
            "stale_file",
            f"{place.shown} has changed: sha256 is {content.sha256}, expected {expected}",
            path=place.shown,
            details={"expectedSha256": expected, "actualSha256": content.sha256},
            next_step="read the file again",
        )


class WriteFileArguments(Arguments, frozen=True):
    path: FilePath
    content: str
    expected_sha256: Annotated[Sha256, Meta()]


class WriteFile(BuiltInTool[WriteFileArguments]):
    name = "write_file"
    description = "Replace the content of a file that was read before."
    takes = WriteFileArguments
    writes_paths = ("path",)

    async def run(self, args: WriteFileArguments, context: ToolContext) -> ToolOutput:
        changes = text.replacing([("", args.content)])
        place = await self.place(context, "write", args.path, changes)
        with recorded(context, self.name, "update", place) as event:
            before = await asyncio.to_thread(disk.read, place)
            event.before_sha256 = before.sha256
            check_hash(place, before, args.expected_sha256)
            old = text.decode(before.data)
            data = old.encode(args.content)
            await asyncio.to_thread(disk.replace, place, data, before.mode)
            event.after_sha256 = disk.sha256(data)
            event.diff = await asyncio.to_thread(text.diff, old.text, args.content, place.shown)
        return changed(place, before.sha256, data, event.diff)


def changed(place: WorkspacePath, before: str, data: bytes, diff: str) -> ToolOutput:
    after = disk.sha256(data)
    return ToolOutput(
        f"Wrote {place.shown} ({len(data)} bytes, sha256 {after})\n{diff}".rstrip(),
        data={
            "path": place.shown,
            "beforeSha256": before,
            "afterSha256": after,
            "sizeBytes": len(data),
            "diff": diff,
        },
    )

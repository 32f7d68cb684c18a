"""`delete_file`, `restore_file` and `move_file`."""

import asyncio
from typing import Any

from stringd.runs.errors import RefusedError
from stringd.runs.guard.workspace import WorkspacePath
from stringd.runs.tools.base import Arguments, BuiltInTool
from stringd.runs.tools.context import ToolContext
from stringd.runs.tools.files import disk, text
from stringd.runs.tools.files.changes import recorded
from stringd.runs.tools.files.write import FilePath, Sha256, check_hash
from stringd.runs.tools.output import ToolFailure, ToolOutput


def to_trash(context: ToolContext, place: WorkspacePath, content: disk.HashedContent) -> str:
    """Put a copy into the trash; its place there."""
    archive = context.desk.trash.put(
        place.shown,
        content.data,
        content.mode,
        run_id=context.run_id,
        agent_name=context.agent_name,
    )
    return str(archive)


def _gone_diff(place: WorkspacePath, content: disk.HashedContent) -> str:
    if text.is_binary(content.data):
        return f"(binary file of {len(content.data)} bytes)"
    return text.diff(text.decode(content.data).text, "", place.shown)


class DeleteFileArguments(Arguments, frozen=True):
    path: FilePath
    expected_sha256: Sha256 | None = None
    permanent: bool | None = None


class DeleteFile(BuiltInTool[DeleteFileArguments]):
    name = "delete_file"
    description = "Delete a file. It goes to the trash unless permanent is set."
    takes = DeleteFileArguments
    writes_paths = ("path",)
    effect = "reads"  # what it takes away is put nowhere an agent could use it

    async def run(self, args: DeleteFileArguments, context: ToolContext) -> ToolOutput:
        place = await self.place(context, "write", args.path)
        with recorded(context, self.name, "delete", place) as event:
            before = await asyncio.to_thread(disk.read, place)
            event.before_sha256 = before.sha256
            check_hash(place, before, args.expected_sha256)
            trashed = None
            if not args.permanent:
                trashed = await asyncio.to_thread(to_trash, context, place, before)
            await asyncio.to_thread(disk.remove, place)
            event.diff = await asyncio.to_thread(_gone_diff, place, before)
        data: dict[str, Any] = {
            "deleted": True,
            "path": place.shown,
            "beforeSha256": before.sha256,
            "sizeBytes": len(before.data),
            "diff": event.diff,
            "permanent": trashed is None,
        }
        if trashed is None:
            return ToolOutput(f"Deleted {place.shown} for good", data=data)
        message = f"Deleted {place.shown}. restore_file brings it back from {trashed}"
        return ToolOutput(message, data={**data, "trashedTo": trashed})


class RestoreFileArguments(Arguments, frozen=True):
    trashed_path: FilePath
    target_path: str | None = None


class RestoreFile(BuiltInTool[RestoreFileArguments]):
    name = "restore_file"
    description = "Bring a deleted file back from the trash. Never overwrites one."
    takes = RestoreFileArguments
    writes_paths = ("trashedPath", "targetPath")

    async def run(self, args: RestoreFileArguments, context: ToolContext) -> ToolOutput:
        trash = context.desk.trash
        try:
            metadata, data, mode = await asyncio.to_thread(trash.open, args.trashed_path)
        except RefusedError as error:
            raise ToolFailure("not_found", str(error), path=args.trashed_path) from None
        place = await self.place(context, "write", args.target_path or metadata.original_path)
        with recorded(context, self.name, "create", place) as event:
            await asyncio.to_thread(_put_back, place, data, mode)
            event.after_sha256 = disk.sha256(data)
            await asyncio.to_thread(trash.discard, args.trashed_path)
        return ToolOutput(
            f"Restored {place.shown} ({len(data)} bytes, sha256 {event.after_sha256})",
            data={
                "restored": True,
                "path": place.shown,
                "sha256": event.after_sha256,
                "sizeBytes": len(data),
            },
        )


def _put_back(place: WorkspacePath, data: bytes, mode: int) -> None:
    if disk.is_there(place):
        raise disk.exists(place, "choose another targetPath")
    disk.make_parents(place)
    disk.create(place, data, mode)


class MoveFileArguments(Arguments, frozen=True):
    from_path: FilePath
    to_path: FilePath
    expected_sha256: Sha256
    overwrite: bool | None = None


class MoveFile(BuiltInTool[MoveFileArguments]):
    name = "move_file"
    description = "Move or rename a file that was read before."
    takes = MoveFileArguments
    writes_paths = ("fromPath", "toPath")

    async def run(self, args: MoveFileArguments, context: ToolContext) -> ToolOutput:
        source = await self.place(context, "write", args.from_path)
        target = await self.place(context, "write", args.to_path)
        with recorded(context, self.name, "move", source) as event:
            event.to_path = target.shown
            content = await asyncio.to_thread(disk.read, source)
            event.before_sha256 = event.after_sha256 = content.sha256
            check_hash(source, content, args.expected_sha256)
            overwrite = bool(args.overwrite)
            trashed = await asyncio.to_thread(
                self._make_room, context, source, target, overwrite=overwrite
            )
            await asyncio.to_thread(disk.create, target, content.data, content.mode)
            await asyncio.to_thread(disk.remove, source)
        data: dict[str, Any] = {
            "moved": True,
            "fromPath": source.shown,
            "toPath": target.shown,
            "sha256": content.sha256,
            "sizeBytes": len(content.data),
        }
        if trashed is not None:
            data["trashedTo"] = trashed
        return ToolOutput(f"Moved {source.shown} to {target.shown}", data=data)

    @staticmethod
    def _make_room(
        context: ToolContext, source: WorkspacePath, target: WorkspacePath, *, overwrite: bool
    ) -> str | None:
        if target.real.is_dir():
            raise ToolFailure("already_exists", f"{target.shown} is a directory", path=target.shown)
        if not disk.is_there(target):
            return None
        if not overwrite or target == source:
            raise disk.exists(target, "choose another toPath, or pass overwrite")
        trashed = to_trash(context, target, disk.read(target))
        disk.remove(target)
        return trashed

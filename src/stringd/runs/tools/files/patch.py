"""`apply_patch`: several files changed, made, moved and deleted by one patch; all or none."""

import asyncio
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import Annotated, Literal

from msgspec import Meta

from stringd.runs.guard.workspace import WorkspacePath
from stringd.runs.record.events import ToolMutation
from stringd.runs.tools.base import Arguments, BuiltInTool
from stringd.runs.tools.context import ToolContext
from stringd.runs.tools.files import disk, text
from stringd.runs.tools.files.changes import recorded
from stringd.runs.tools.files.move import to_trash
from stringd.runs.tools.files.patch_apply import apply_hunks
from stringd.runs.tools.files.patch_text import FilePatch, bad_patch, parse_patch
from stringd.runs.tools.output import ToolFailure, ToolOutput

_MAX_FILES = 200


class ApplyPatchArguments(Arguments, frozen=True):
    patch: Annotated[str, Meta(min_length=1, description='unified diff, or "*** Begin Patch" …')]


@dataclass
class FileChange:
    """A change that was worked out and not made yet. `after` is None for a file that goes."""

    operation: Literal["create", "update", "delete", "move"]
    place: WorkspacePath
    before: disk.HashedContent | None
    after: bytes | None
    target: WorkspacePath
    diff: str


class ApplyPatch(BuiltInTool[ApplyPatchArguments]):
    name = "apply_patch"
    description = (
        "Change several files with one patch: a unified diff, or the *** Begin Patch form with "
        "Add, Update and Delete File. Everything applies or nothing does."
    )
    takes = ApplyPatchArguments
    writes_paths = (".",)
    guidance = (
        "Copy context lines exactly as read_file shows them, three or so around each change. "
        "Line numbers in @@ are hints only. Paths are relative to the working directory."
    )

    async def run(self, args: ApplyPatchArguments, context: ToolContext) -> ToolOutput:
        patches = parse_patch(args.patch)
        if len(patches) > _MAX_FILES:
            raise bad_patch(f"it changes more than {_MAX_FILES} files")
        # Whoever is asked sees every file before the first of them is touched.
        places = [
            (
                await self.place(context, "write", patch.path),
                await self.place(context, "write", patch.to_path or patch.path),
            )
            for patch in patches
        ]
        named = [place.real for pair in places for place in dict.fromkeys(pair)]
        if len(set(named)) != len(named):
            raise bad_patch("it names a file twice; put all of its hunks into one section")
        with ExitStack() as stack:
            events = [
                stack.enter_context(recorded(context, self.name, _operation(patch), place))
                for patch, (place, _) in zip(patches, places, strict=True)
            ]
            changes = await asyncio.to_thread(_work_out, patches, places)
            for event, change in zip(events, changes, strict=True):
                _describe(event, change)
            trashed = await asyncio.to_thread(_make, changes, context)
        return _answer(changes, trashed)


def _operation(patch: FilePatch) -> Literal["create", "update", "delete", "move"]:
    return "move" if patch.to_path and patch.operation == "update" else patch.operation


def _work_out(
    patches: list[FilePatch], places: list[tuple[WorkspacePath, WorkspacePath]]
) -> list[FileChange]:
    """Everything that will be written. Raises `ToolFailure` or `OSError`; nothing has changed."""
    return [
        _change(patch, place, target)
        for patch, (place, target) in zip(patches, places, strict=True)
    ]


def _change(patch: FilePatch, place: WorkspacePath, target: WorkspacePath) -> FileChange:
    if patch.operation == "create":
        if disk.is_there(place):
            raise disk.exists(place, "use Update File for it; nothing was changed")
        data = patch.content.encode("utf-8", "replace")
        diff = text.diff("", patch.content, place.shown)
        return FileChange("create", place, None, data, place, diff)
    before = disk.read(place)
    if text.is_binary(before.data):
        raise ToolFailure("binary_file", f"{place.shown} is binary", path=place.shown)
    old = text.decode(before.data)
    if patch.operation == "delete":
        if patch.hunks:
            # A diff that deletes another content was made for another file.
            apply_hunks(old.text, patch.hunks, place.shown)
        diff = text.diff(old.text, "", place.shown)
        return FileChange("delete", place, before, None, place, diff)
    if place != target and disk.is_there(target):
        raise disk.exists(target, "choose another name; nothing was changed")
    new = apply_hunks(old.text, patch.hunks, place.shown)
    diff = text.diff(old.text, new, target.shown)
    operation: Literal["update", "move"] = "update" if place == target else "move"
    return FileChange(operation, place, before, old.encode(new), target, diff)


def _describe(event: ToolMutation, change: FileChange) -> None:
    if change.before is not None:
        event.before_sha256 = change.before.sha256
    if change.after is not None:
        event.after_sha256 = disk.sha256(change.after)
    if change.target != change.place:
        event.to_path = change.target.shown
    event.diff = change.diff


def _make(changes: list[FileChange], context: ToolContext) -> list[str]:
    """Make every change, or take back those that were made. What is deleted is in the trash."""
    trashed: list[str] = []
    made: list[FileChange] = []
    try:
        for change in changes:
            made.append(change)
            trashed += _make_one(change, context)
    except BaseException:
        for change in reversed(made):
            with suppress(OSError, ToolFailure):
                _take_back(change)
        raise
    return trashed


def _make_one(change: FileChange, context: ToolContext) -> list[str]:
    if change.before is not None and disk.read(change.place).sha256 != change.before.sha256:
        raise ToolFailure("stale_file", f"{change.place.shown} changed meanwhile; nothing is done")
    if change.after is None:
        assert change.before is not None  # only what is there is deleted
        trashed = to_trash(context, change.place, change.before)
        disk.remove(change.place)
        return [f"{change.place.shown}: restore_file brings it back from {trashed}"]
    if change.operation == "update":
        assert change.before is not None
        disk.replace(change.place, change.after, change.before.mode)
        return []
    disk.make_parents(change.target)
    disk.create(change.target, change.after, change.before.mode if change.before else 0o666)
    if change.operation == "move":
        disk.remove(change.place)
    return []


def _take_back(change: FileChange) -> None:
    """As it was before; a step that was not made is left alone."""
    ours = change.after is not None and disk.is_there(change.target)
    if ours and disk.read(change.target).data == change.after and change.operation != "update":
        disk.remove(change.target)
    if change.before is None:
        return
    if not disk.is_there(change.place):
        disk.create(change.place, change.before.data, change.before.mode)
    elif disk.read(change.place).data == change.after:
        disk.replace(change.place, change.before.data, change.before.mode)


def _answer(changes: list[FileChange], trashed: list[str]) -> ToolOutput:
    lines = [_line(change) for change in changes]
    diffs = "".join(change.diff for change in changes)
    shown = diffs if len(diffs) <= text.MAX_DIFF else diffs[: text.MAX_DIFF] + "\n… (cut)"
    files = [
        {
            "path": change.place.shown,
            "operation": change.operation,
            **({"toPath": change.target.shown} if change.target != change.place else {}),
            **({"sha256": disk.sha256(change.after)} if change.after is not None else {}),
        }
        for change in changes
    ]
    told = "\n".join([*lines, *trashed])
    return ToolOutput(f"{told}\n{shown}".rstrip(), data={"files": files, "diff": shown})


def _line(change: FileChange) -> str:
    match change.operation:
        case "create":
            return f"Created {change.place.shown}"
        case "delete":
            return f"Deleted {change.place.shown}"
        case "move":
            return f"Moved {change.place.shown} to {change.target.shown}"
        case "update":
            return f"Changed {change.place.shown}"

"""`edit_file`."""

import asyncio
from typing import Annotated

import msgspec
from msgspec import Meta

from stringd.runs.tools.checked import Arguments, CheckedTool
from stringd.runs.tools.files import disk, edits, text
from stringd.runs.tools.files.changes import recorded
from stringd.runs.tools.files.writing import FilePath, Sha256, changed, check_hash
from stringd.runs.tools.outcome import ToolFailure, ToolOutput
from stringd.runs.tools.port import ToolContext


class OneEdit(msgspec.Struct, rename="camel", frozen=True):
    old_text: Annotated[str, Meta(min_length=1)]
    new_text: str
    expected_occurrences: Annotated[int, Meta(ge=1)] | None = None


class EditFileArguments(Arguments, frozen=True):
    path: FilePath
    edits: Annotated[list[OneEdit], Meta(min_length=1)]
    expected_sha256: Sha256 | None = None


class EditFile(CheckedTool[EditFileArguments]):
    name = "edit_file"
    description = "Replace exact pieces of text in a file; all of them or none."
    takes = EditFileArguments

    async def run(self, args: EditFileArguments, context: ToolContext) -> ToolOutput:
        place = await self.place(context, "write", args.path)
        with recorded(context, self.name, "update", place) as event:
            before = await asyncio.to_thread(disk.read, place)
            event.before_sha256 = before.sha256
            check_hash(place, before, args.expected_sha256)
            if text.is_binary(before.data):
                raise ToolFailure("binary_file", f"{place.shown} is binary", path=place.shown)
            old = text.decode(before.data)
            new = await asyncio.to_thread(edits.apply, old.text, _edits(args), place.shown)
            data = old.encode(new)
            await asyncio.to_thread(disk.replace, place, data, before.mode)
            event.after_sha256 = disk.sha256(data)
            event.diff = await asyncio.to_thread(text.diff, old.text, new, place.shown)
        return changed(place, before.sha256, data, event.diff)


def _edits(args: EditFileArguments) -> list[edits.Edit]:
    return [
        edits.Edit(
            each.old_text.replace("\r\n", "\n"),
            each.new_text.replace("\r\n", "\n"),
            each.expected_occurrences or 1,
        )
        for each in args.edits
    ]

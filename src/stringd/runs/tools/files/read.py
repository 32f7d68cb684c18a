"""`read_file`."""

import asyncio
from base64 import b64encode
from typing import Annotated, Any

from msgspec import Meta

from stringd.runs.guard.workspace import WorkspacePath
from stringd.runs.tools.base import Arguments, BuiltInTool
from stringd.runs.tools.context import ToolContext
from stringd.runs.tools.files import disk, text
from stringd.runs.tools.output import ToolFailure, ToolOutput

LineNumber = Annotated[int, Meta(ge=1, description="1-based, inclusive")]


class ReadFileArguments(Arguments, frozen=True):
    path: Annotated[str, Meta(min_length=1)]
    start_line: LineNumber | None = None
    end_line: LineNumber | None = None
    max_bytes: Annotated[int, Meta(ge=1)] | None = None
    allow_binary: bool | None = None


class ReadFile(BuiltInTool[ReadFileArguments]):
    name = "read_file"
    description = (
        "Read a file, whole or a range of lines. The answer carries the sha256 that write_file "
        "and move_file ask for."
    )
    takes = ReadFileArguments
    reads_paths = ("path",)
    repeatable = True
    effect = "reads"

    async def run(self, args: ReadFileArguments, context: ToolContext) -> ToolOutput:
        place = await self.place(context, "read", args.path)
        content = await asyncio.to_thread(disk.read, place)
        limit = args.max_bytes or 262_144
        if text.is_binary(content.data):
            return _binary(place, content, limit, allowed=bool(args.allow_binary))
        return _text(place, content, args, limit)


def _binary(
    place: WorkspacePath, content: disk.HashedContent, limit: int, *, allowed: bool
) -> ToolOutput:
    size = len(content.data)
    if not allowed:
        raise ToolFailure(
            "binary_file",
            f"{place.shown} is binary ({size} bytes, sha256 {content.sha256})",
            path=place.shown,
            details={"sizeBytes": size, "sha256": content.sha256},
            next_step="pass allowBinary to get it as base64",
        )
    encoded = b64encode(content.data[:limit]).decode("ascii")
    data = _facts(content, 0, 0, 0, truncated=size > limit)
    data |= {"contentBase64": encoded, "encoding": "base64", "binary": True}
    head = f"{place.shown} (binary, {size} bytes, sha256 {content.sha256}{_cut(size > limit)})"
    return ToolOutput(f"{head}\n{encoded}", data=data)


def _text(
    place: WorkspacePath, content: disk.HashedContent, args: ReadFileArguments, limit: int
) -> ToolOutput:
    found = text.decode(content.data)
    lines = found.text.replace("\r\n", "\n").split("\n")
    start = args.start_line or 1
    end = min(args.end_line or len(lines), len(lines))
    raw = "\n".join(lines[start - 1 : end]).encode("utf-8", "surrogateescape")
    truncated = len(raw) > limit
    # A cut must not leave half a character behind.
    kept = raw[:limit].decode("utf-8", "ignore" if truncated else "replace")
    if truncated:
        end = start + kept.count("\n")
    data = _facts(content, start, end, len(lines), truncated=truncated)
    data |= {"content": kept, "encoding": "utf-8", "binary": False}
    data |= {"newlineStyle": found.newlines, "hasBom": found.bom}
    head = (
        f"{place.shown} (lines {start}-{end} of {len(lines)}, {len(content.data)} bytes, "
        f"sha256 {content.sha256}{_cut(truncated)})"
    )
    return ToolOutput(f"{head}\n{kept}", data=data)


def _facts(
    content: disk.HashedContent, start: int, end: int, count: int, *, truncated: bool
) -> dict[str, Any]:
    return {
        "startLine": start,
        "endLine": end,
        "lineCount": count,
        "sizeBytes": len(content.data),
        "sha256": content.sha256,
        "truncated": truncated,
    }


def _cut(truncated: bool) -> str:
    return ", truncated" if truncated else ""

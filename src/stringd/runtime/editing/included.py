"""Blocks that a document shows and another file holds: which file an edit of them changes."""

from os.path import realpath
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import unquote

from stringd.documents import Include, find_block, parse
from stringd.runtime.editing.paths import FilePath, is_directory, is_within, locate
from stringd.runtime.editing.text_file import read_text
from stringd.runtime.errors import CommandError
from stringd.runtime.topics.location import is_web

if TYPE_CHECKING:
    from stringd.runtime.topics.call import Call

MAX_FILES: Final = 64
"""Of a document that includes more, the first so many are looked into."""


class BlockSource(NamedTuple):
    """The file a block is in; without `block` all of it is the block."""

    file: FilePath
    block: str | None


def source_directory(path: Path) -> Path | None:
    """Where a document keeps its blocks as files, if it does."""
    named = (path.with_name(f"{path.name}.source"), path.with_suffix(".source"))
    return next((each for each in named if is_directory(each)), None)


def block_source(call: "Call", file: FilePath, ident: str) -> BlockSource | None:
    """Where the text of a block is that `file` includes; None when it includes no such block.

    Raises `CommandError` for one that is outside the document's own directory.
    """
    waiting = [(file, read_text(file).text)]
    seen = {file.real}
    while waiting and len(seen) < MAX_FILES:
        parent, text = waiting.pop(0)
        for include in _includes(text):
            part = _part(call, parent, include)
            if part is None:
                continue
            if include.id == ident:
                return _within(file, part, ident)
            if part.file.real in seen:
                continue
            seen.add(part.file.real)
            try:
                inner = read_text(part.file).text
            except CommandError:
                continue
            if find_block(inner, ident) is not None:
                return _within(file, BlockSource(part.file, ident), ident)
            waiting.append((part.file, inner))
    return None


def _includes(text: str) -> list[Include]:
    named = (each for each in parse(text).directives if each.type == "include")
    return [Include(each.name, each.path) for each in named if each.name]


def _part(call: "Call", parent: FilePath, include: Include) -> BlockSource | None:
    """What one include shows; None for what is not a file that may be reached."""
    if is_web(include.path):
        return None
    sources = source_directory(parent.path)
    if include.path:
        name = unquote(include.file)
    elif sources is not None:
        name = str(sources / f"{include.id}.md")
    else:
        return None
    try:
        part = locate(call, name, parent.path.parent)
        part = part._replace(typed=call.session.shown(part.path.as_uri()))
        if sources is not None or find_block(read_text(part).text, include.block) is None:
            return BlockSource(part, None)
    except CommandError:
        return None
    return BlockSource(part, include.block)


def _within(document: FilePath, found: BlockSource, ident: str) -> BlockSource:
    if is_within(str(found.file.real), realpath(document.path.parent)):
        return found
    where = f"{found.file.typed}#{found.block}" if found.block else found.file.typed
    raise CommandError(
        "INVALID_TARGET",
        f"#{ident} of {document.typed} comes from a file outside its directory.\n"
        f"Recovery: /edit {where}",
    )

"""`/write`, `/append`, `/edit`, `/replace`, `/verify`, `/undo`: changing files.

Whatever writes runs in a thread: it waits for the disk, and other topics must not wait with it.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import msgspec

from stringd.documents import (
    append_text,
    available_blocks,
    block_text,
    find_block,
    line_count,
    lines_text,
    newline_of,
    numbered,
    parse,
    parse_target,
    preview,
    replace_block,
    replace_lines,
    replace_text,
    split_replacement,
    with_newlines,
)
from stringd.documents.errors import BlockNotFoundError, DocumentError
from stringd.runtime.commands.edit_target import (
    EditRequest,
    file_of,
    read_order,
    refuse_lines,
    unquoted,
    whole_file_of,
)
from stringd.runtime.editing.edit import Edited, EditRules, NotAskedError, edit_file
from stringd.runtime.editing.included import BlockSource, block_source
from stringd.runtime.editing.paths import FilePath, locate_named
from stringd.runtime.editing.text_file import digest, is_large, read_text
from stringd.runtime.editing.undo import revert
from stringd.runtime.errors import CommandError
from stringd.runtime.topics.call import Call
from stringd.wire.result import Result

_WRITE_USAGE: Final = "Usage: /write <path> [--new] with the text on the following lines"
_APPEND_USAGE: Final = "Usage: /append <path> with the text on the following lines"
_EDIT_USAGE: Final = (
    "Usage: /edit <path>[#block], with new text on the following lines to replace it"
)
_REPLACE_USAGE: Final = (
    "Usage: /replace <path>:L5-L10, <path>#block or <path> [--all], with a body below"
)


def write(call: Call) -> Awaitable[Result]:
    """Create or overwrite a file; with `#block`, replace that block."""
    return _changing(call, _write)


def append(call: Call) -> Awaitable[Result]:
    """Add text at the end of an existing file, on a line of its own."""
    return _changing(call, _append)


def edit(call: Call) -> Result | Awaitable[Result]:
    """Show source with line numbers; with text, replace the whole file, a block or lines."""
    order = read_order(call, _EDIT_USAGE, ("--force",), guesses_names=True)
    if order.text:
        return _changing(call, lambda call: _edit(call, order))
    file = file_of(call, order)
    if is_large(file.real):
        return asyncio.to_thread(_view, call, order, file)
    return _view(call, order, file)


def replace(call: Call) -> Awaitable[Result]:
    """Replace lines, a block, or exact text."""
    return _changing(call, _replace)


def undo(call: Call) -> Awaitable[Result]:
    """Take this topic's last edit back."""
    return _changing(call, _undo)


def verify(call: Call) -> Result | Awaitable[Result]:
    """A block as an edit would find it."""
    typed = unquoted(call.argument.strip())
    target = parse_target(typed)
    if not target.path or not target.block:
        raise CommandError("INVALID_TARGET", "Usage: /verify <path>#<blockId>")
    file = locate_named(call, target.path)
    if is_large(file.real):
        return asyncio.to_thread(_verify, call, file, typed, target.block)
    return _verify(call, file, typed, target.block)


async def _changing(call: Call, work: Callable[[Call], Result]) -> Result:
    """Run what changes a file in a thread; an agent of a run is asked about that file first."""
    while True:
        try:
            return await asyncio.to_thread(work, call)
        except NotAskedError as unasked:
            await unasked.permission.write(unasked.path)


def _write(call: Call) -> Result:
    order = read_order(call, _WRITE_USAGE, ("--new", "--force"))
    if order.text is None:
        raise CommandError("INVALID_TARGET", _WRITE_USAGE)
    if order.target.block is not None:
        return _edit_block(call, order)
    refuse_lines(order)
    file = whole_file_of(call, order)
    text = order.text
    rules = EditRules(
        may_create=True,
        must_create="--new" in order.switches,
        makes_directories=True,
        force="--force" in order.switches,
        whole=True,
    )
    done = edit_file(call, file, lambda old: _in_style(old, text), rules)
    message = f"Written: {order.typed} ({done.size} bytes, {line_count(text)} lines)"
    return _confirmation(order.typed, message, done, whole=True)


def _append(call: Call) -> Result:
    order = read_order(call, _APPEND_USAGE, ())
    if order.target.block is not None:
        whole = "A block is changed as a whole, by /edit <path>#<block> with its new text below."
        raise CommandError("INVALID_TARGET", f"{_APPEND_USAGE}\n{whole}")
    if order.text is None:
        raise CommandError("INVALID_TARGET", _APPEND_USAGE)
    refuse_lines(order)
    text = order.text
    # What others added meanwhile stays: appending overwrites nothing.
    rules = EditRules(ignores_changes=True)
    done = edit_file(call, file_of(call, order), lambda old: append_text(old, text), rules)
    message = f"Appended to: {order.typed} (now {done.size} bytes)"
    return _confirmation(order.typed, message, done)


def _edit(call: Call, order: EditRequest) -> Result:
    text, target = order.text or "", order.target
    if target.block is not None:
        return _edit_block(call, order)
    if target.first is not None and target.last is not None:
        return _replace_lines(call, order, target.first, target.last, text)
    rules = EditRules(may_create=True, force="--force" in order.switches, whole=True)
    file = whole_file_of(call, order)
    done = edit_file(call, file, lambda old: _in_style(old, text), rules)
    message = f"Edited {order.typed} ({done.lines} lines, whole file)"
    return _confirmation(order.typed, message, done, whole=True)


def _replace(call: Call) -> Result:
    if not call.argument.strip():
        raise CommandError("INVALID_TARGET", _REPLACE_USAGE)
    if call.body is None:
        raise CommandError("INVALID_PAYLOAD", f"No replacement given.\n{_REPLACE_USAGE}")
    order = read_order(call, _REPLACE_USAGE, ("--all", "--force"))
    target, body = order.target, call.body
    if target.block is not None:
        return _edit_block(call, order)
    if target.first is not None and target.last is not None:
        return _replace_lines(call, order, target.first, target.last, body)
    return _replace_text(call, order, body)


def _verify(call: Call, file: FilePath, typed: str, ident: str) -> Result:
    text = _seen_text(call, file)
    span = find_block(text, ident)
    if span is None:
        content = _included_text(call, file, ident, text).strip()
    else:
        block = text[span.start : span.end]
        content = block if span.heading else block.strip()
    counted = f"{line_count(content)} lines, {len(content)} chars"
    return Result.page(f"Verified {typed} ({counted})", preview(content))


def _undo(call: Call) -> Result:
    file, data = revert(call)
    if data is None:
        return Result.done(f"Undo: deleted {file.typed} (was newly created)")
    lines = data.count(b"\n") + 1
    return Result.done(f"Undo: reverted {file.typed} ({lines} lines)")


def _view(call: Call, order: EditRequest, file: FilePath) -> Result:
    target = order.target
    text = _seen_text(call, file)
    shown, first, held = text, 1, (file.typed, text, target.block)
    if target.block is not None:
        try:
            shown = block_text(text, target.block)
        except BlockNotFoundError:
            place = _included_block(call, file, target.block, text)
            source = _seen_text(call, place.file)
            held = (call.session.shown(place.file.path.as_uri()), source, place.block)
            shown = source if place.block is None else block_text(source, place.block)
    elif target.first is not None and target.last is not None:
        first = target.first
        try:
            shown = lines_text(text, target.first, target.last)
        except DocumentError as error:
            raise CommandError(error.code, error.message(file.typed)) from error
    limit = call.session.number("_edit_max_lines", 1, 100)
    cut = limit if "_edit_max_lines" in call.session.variables else None
    result = Result.page(f"[editing: {order.typed}]", numbered(shown, first, cut))
    if target.block is None:
        return result
    return msgspec.structs.replace(result, note=_file_lines(*held, shown))


def _file_lines(name: str, text: str, ident: str | None, shown: str) -> str:
    """Where the lines of a block are in its file: the protocol counts them from 1 in a view."""
    span = find_block(text, ident) if ident else None
    start = span.start if span else 0
    blank = len(text[start:]) - len(text[start:].lstrip())
    first = line_count(text[: start + blank]) if ident else 1
    lines = f"L{first}-L{first + line_count(shown) - 1}"
    return f"(In {name} these are {lines}: /replace {name}:{lines} takes them.)"


def _edit_block(call: Call, order: EditRequest) -> Result:
    ident, text = order.target.block, order.text or ""
    assert ident is not None
    file = file_of(call, order)
    place = BlockSource(file, ident)
    if find_block(read_text(file).text, ident) is None:
        place = block_source(call, file, ident) or place

    def change(old: str) -> str:
        if place.block is not None:
            return replace_block(old, place.block, text)
        ends = "\n" if old.endswith("\n") and not text.endswith("\n") else ""
        return _in_style(old, f"{text}{ends}")

    done = edit_file(call, place.file, change, EditRules(force="--force" in order.switches))
    where = order.typed if place.file is file else f"{order.typed} (in {place.file.typed})"
    return _confirmation(where, f"Edited {order.typed} ({done.lines} lines)", done)


def _replace_lines(call: Call, order: EditRequest, first: int, last: int, body: str) -> Result:
    done = _edit_file(call, order, lambda old: replace_lines(old, first, last, body))
    shown = f"{file_of(call, order).typed}:L{first}" + (f"-L{last}" if last != first else "")
    return _confirmation(shown, f"Replaced {shown}", done)


def _replace_text(call: Call, order: EditRequest, body: str) -> Result:
    count = 0

    def change(old: str) -> str:
        nonlocal count
        before, after = split_replacement(body)
        replaced = replace_text(old, before, after, every="--all" in order.switches)
        count = replaced.matches
        return replaced.source

    done = _edit_file(call, order, change)
    noun = "occurrence" if count == 1 else "occurrences"
    return _confirmation(order.typed, f"Replaced {count} {noun} in {order.typed}", done)


def _edit_file(call: Call, order: EditRequest, change: Callable[[str], str]) -> Edited:
    """Change part of a file that is there."""
    rules = EditRules(force="--force" in order.switches)
    return edit_file(call, file_of(call, order), change, rules)


def _confirmation(typed: str, message: str, done: Edited, *, whole: bool = False) -> Result:
    feedback = f"{typed} — {done.diff.summary}"
    if whole and done.blind:
        feedback = f"{feedback} (overwrote text this topic had not read; /undo restores it)"
    shown = done.diff.chanflow if done.diff.changed else None
    return Result.done(message, feedback=feedback, diff=shown, mode="edit")


def _in_style(old: str, text: str) -> str:
    """A file's new text, with the line ends the file had unless the text brings its own."""
    return text if "\r\n" in text else with_newlines(text, newline_of(old))


def _seen_text(call: Call, file: FilePath) -> str:
    loaded = read_text(file)
    call.session.seen_files.saw(file.real, digest(loaded.data))
    return loaded.text


def _included_text(call: Call, file: FilePath, ident: str, text: str) -> str:
    """The text of a block that another file holds. Raises `CommandError` when none does."""
    place = _included_block(call, file, ident, text)
    held = _seen_text(call, place.file)
    return held if place.block is None else block_text(held, place.block)


def _included_block(call: Call, file: FilePath, ident: str, text: str) -> BlockSource:
    """The block that another file holds. Raises `CommandError` when none does."""
    place = block_source(call, file, ident)
    if place is None:
        known = available_blocks(parse(text), ident)
        raise CommandError("NOT_FOUND", f"Block not found: #{ident} in {file.typed}\n{known}")
    return place

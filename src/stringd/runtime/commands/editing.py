"""`/write`, `/append`, `/edit`, `/replace`, `/verify`, `/undo`: changing files."""

from typing import Final, NamedTuple

from stringd.documents import (
    Target,
    append_text,
    block_text,
    find_block,
    line_count,
    lines_text,
    numbered,
    parse_target,
    preview,
    replace_block,
    replace_lines,
    replace_text,
    split_replacement,
    tokens,
)
from stringd.documents.errors import BlockNotFoundError, DocumentError
from stringd.runtime.commands.call import Call
from stringd.runtime.edit import Edited, EditRules, edit_file, revert
from stringd.runtime.errors import CommandError
from stringd.runtime.files import read_text
from stringd.runtime.paths import FilePath, locate
from stringd.wire.result import Result

_WRITE_USAGE: Final = "Usage: /write <path> [--new] with the text on the following lines"
_APPEND_USAGE: Final = "Usage: /append <path> with the text on the following lines"
_EDIT_USAGE: Final = (
    "Usage: /edit <path>[#block], with new text on the following lines to replace it"
)
_REPLACE_USAGE: Final = (
    "Usage: /replace <path>:L5-L10, <path>#block or <path> [--all], with a body below"
)


class Order(NamedTuple):
    """What an editing command asks for: where, with which switches, and the text."""

    target: Target
    typed: str
    switches: frozenset[str]
    text: str | None


def write(call: Call) -> Result:
    """Create or overwrite a file; with `#block`, replace that block."""
    order = _order(call, _WRITE_USAGE, ("--new", "--force"))
    if order.text is None:
        raise CommandError("INVALID_TARGET", _WRITE_USAGE)
    if order.target.block is not None:
        return _edit_block(call, order)
    text = order.text
    rules = EditRules(
        may_create=True,
        must_create="--new" in order.switches,
        makes_directories=True,
        force="--force" in order.switches,
    )
    done = edit_file(call, _file(call, order), lambda _old: text, rules)
    message = f"Written: {order.typed} ({done.size} bytes, {line_count(text)} lines)"
    return _confirmation(order.typed, message, done)


def append(call: Call) -> Result:
    """Add text at the end of an existing file, on a line of its own."""
    order = _order(call, _APPEND_USAGE, ())
    if order.text is None:
        raise CommandError("INVALID_TARGET", _APPEND_USAGE)
    text = order.text
    # What others added meanwhile stays: appending overwrites nothing.
    rules = EditRules(ignores_changes=True)
    done = edit_file(call, _file(call, order), lambda old: append_text(old, text), rules)
    message = f"Appended to: {order.typed} (now {done.size} bytes)"
    return _confirmation(order.typed, message, done)


def edit(call: Call) -> Result:
    """Show source with line numbers; with text, replace the whole file or one block."""
    order = _order(call, _EDIT_USAGE, ("--force",))
    if not order.text:
        return _view(call, order)
    if order.target.block is not None:
        return _edit_block(call, order)
    text = order.text
    rules = EditRules(may_create=True, force="--force" in order.switches)
    done = edit_file(call, _file(call, order), lambda _old: text, rules)
    message = f"Edited {order.typed} ({done.lines} lines, whole file)"
    return _confirmation(order.typed, message, done)


def replace(call: Call) -> Result:
    """Replace lines, a block, or exact text."""
    if not call.argument.strip():
        raise CommandError("INVALID_TARGET", _REPLACE_USAGE)
    if call.body is None:
        raise CommandError("INVALID_PAYLOAD", f"No replacement given.\n{_REPLACE_USAGE}")
    order = _order(call, _REPLACE_USAGE, ("--all",))
    target, body = order.target, call.body
    if target.block is not None:
        return _edit_block(call, order)
    if target.first is not None and target.last is not None:
        return _replace_lines(call, order, target.first, target.last, body)
    return _replace_text(call, order, body)


def verify(call: Call) -> Result:
    """A block as an edit would find it."""
    typed = call.argument.strip()
    target = parse_target(typed)
    if not target.path or not target.block:
        raise CommandError("INVALID_TARGET", "Usage: /verify <path>#<blockId>")
    file = locate(call, target.path)
    text = _seen_text(call, file)
    span = find_block(text, target.block)
    if span is None:
        raise _block_missing(target.block, target.path)
    block = text[span.start : span.end]
    content = block if span.heading else block.strip()
    counted = f"{line_count(content)} lines, {len(content)} chars"
    return Result.page(f"Verified {typed} ({counted})", preview(content))


def undo(call: Call) -> Result:
    """Take this topic's last edit back."""
    file, text, existed = revert(call)
    assert file is not None
    shown = call.session.shown(file.path.as_uri())
    if existed:
        return Result.done(f"Undo: reverted {shown} ({line_count(text)} lines)")
    return Result.done(f"Undo: deleted {shown} (was newly created)")


def _view(call: Call, order: Order) -> Result:
    target = order.target
    text = _seen_text(call, _file(call, order))
    shown, first = text, 1
    if target.block is not None:
        try:
            shown = block_text(text, target.block)
        except BlockNotFoundError as error:
            raise _block_missing(target.block, target.path) from error
    elif target.first is not None and target.last is not None:
        first = target.first
        try:
            shown = lines_text(text, target.first, target.last)
        except DocumentError as error:
            raise CommandError(error.code, error.message(target.path)) from error
    return Result.page(f"[editing: {order.typed}]", numbered(shown, first))


def _edit_block(call: Call, order: Order) -> Result:
    block, text = order.target.block, order.text or ""
    assert block is not None
    done = edit_file(
        call, _file(call, order), lambda old: replace_block(old, block, text), EditRules()
    )
    return _confirmation(order.typed, f"Edited {order.typed} ({done.lines} lines)", done)


def _replace_lines(call: Call, order: Order, first: int, last: int, body: str) -> Result:
    done = edit_file(
        call, _file(call, order), lambda old: replace_lines(old, first, last, body), EditRules()
    )
    return _confirmation(order.typed, f"Replaced {order.typed}", done)


def _replace_text(call: Call, order: Order, body: str) -> Result:
    count = 0

    def change(old: str) -> str:
        nonlocal count
        before, after = split_replacement(body)
        replaced = replace_text(old, before, after, every="--all" in order.switches)
        count = replaced.matches
        return replaced.source

    done = edit_file(call, _file(call, order), change, EditRules())
    noun = "occurrence" if count == 1 else "occurrences"
    return _confirmation(order.typed, f"Replaced {count} {noun} in {order.typed}", done)


def _confirmation(typed: str, message: str, done: Edited) -> Result:
    feedback = f"{typed} — {done.diff.summary}"
    if done.blind:
        feedback = f"{feedback} (overwrote text this topic had not read; /undo restores it)"
    shown = done.diff.chanflow if done.diff.changed else None
    return Result.done(message, feedback=feedback, diff=shown, mode="edit")


def _order(call: Call, usage: str, allowed: tuple[str, ...]) -> Order:
    """Read the argument. With a body it is all target; without one, text follows the target."""
    argument, switches = _without_switches(call.argument.strip(), allowed)
    if not argument:
        raise CommandError("INVALID_TARGET", usage)
    text: str | None
    if call.body is not None:
        typed, text = _unquoted(argument), call.body
    else:
        typed, text = _target_and_text(call, argument, usage)
    target = parse_target(typed)
    if not target.path:
        if target.first is None and target.block is None:
            raise CommandError("INVALID_TARGET", usage)
        typed = f"{call.session.shown_path() or ''}{typed}"
    return Order(target, typed, switches, text)


def _without_switches(argument: str, allowed: tuple[str, ...]) -> tuple[str, frozenset[str]]:
    """Switches stand before or after the path; elsewhere the same letters are text."""
    found = set()
    changed = True
    while changed:
        changed = False
        for switch in allowed:
            if argument == switch or argument.startswith(f"{switch} "):
                argument, changed = argument.removeprefix(switch).lstrip(), True
                found.add(switch)
            elif argument.endswith(f" {switch}"):
                argument, changed = argument.removesuffix(switch).rstrip(), True
                found.add(switch)
    return argument, frozenset(found)


def _target_and_text(call: Call, argument: str, usage: str) -> tuple[str, str | None]:
    """The one-line form `path text`. A name with spaces that exists is a name."""
    first = tokens(argument)[0] if tokens(argument) else argument
    quoted = argument[0] in "\"'"
    rest = argument[len(first) + 2 * quoted :].strip()
    if not rest:
        return first, None
    whole = parse_target(argument)
    if whole.path and locate(call, whole.path).real.is_file():
        return argument, None
    target = parse_target(first)
    path = target.path
    # `/edit my file.md` means one file; writing `file.md` into `my` would be a disaster.
    doubtful = not quoted and path and "." not in path.rpartition("/")[2]
    if doubtful and not locate(call, path).real.is_file():
        raise CommandError(
            "INVALID_TARGET", f"File not found: {argument}\nQuote names with spaces. {usage}"
        )
    return first, rest


def _file(call: Call, order: Order) -> FilePath:
    """The file an order means; no path means the open local document."""
    if order.target.path:
        return locate(call, order.target.path)._replace(typed=order.target.path)
    location = call.session.location
    if location is None:
        raise CommandError("INVALID_TARGET", "No document open.")
    if not location.uri.startswith("file://"):
        raise CommandError("INVALID_TARGET", "The open document is no local file.")
    file = locate(call, location.uri)
    return file._replace(typed=call.session.shown(location.uri))


def _seen_text(call: Call, file: FilePath) -> str:
    loaded = read_text(file)
    call.session.seen_files[file.real] = loaded.digest
    return loaded.text


def _block_missing(block: str, path: str) -> CommandError:
    return CommandError("NOT_FOUND", f"Block not found: #{block} in {path}")


def _unquoted(text: str) -> str:
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "\"'":
        return text[1:-1]
    return text

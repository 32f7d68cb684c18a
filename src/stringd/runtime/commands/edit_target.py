"""What an editing command asks for: which file, which part of it, which switches, what text."""

import re
from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple

from stringd.documents import Target, parse_target, words
from stringd.runtime.editing.paths import (
    FilePath,
    is_file,
    is_there,
    locate,
    locate_named,
)
from stringd.runtime.errors import CommandError
from stringd.runtime.pages.shortcuts import resolve_shortcut
from stringd.runtime.topics.call import Call
from stringd.runtime.topics.location import path_of

NAME_MAX: Final = 255
"""Longer names no file system takes; what is longer is text."""
_FILE_NAME: Final = re.compile(r"\S*\.[A-Za-z0-9]{1,8}(?:[#:]\S*)?")
_HALF_RANGE: Final = re.compile(r":(?:[Ll]\S*|\d+(?:-\d*)?)")
_SWITCH: Final = re.compile(r"--[A-Za-z][A-Za-z-]*|-h")


class EditRequest(NamedTuple):
    """What an editing command asks for: where, with which switches, and the text."""

    target: Target
    typed: str
    switches: frozenset[str]
    text: str | None


def read_order(
    call: Call, usage: str, allowed: tuple[str, ...], *, guesses_names: bool = False
) -> EditRequest:
    """Read the argument. With a body it is all target; without one, text follows the target."""
    argument, switches = _without_switches(call.argument.strip(), allowed, usage)
    # Two dashes alone end the switches: what follows may be called as it likes.
    ended = argument.startswith("-- ")
    argument = argument[3:].strip() if ended else argument
    text: str | None
    if call.body is not None:
        if not ended:
            argument, trailing = _without_switches(argument, allowed, usage, at_end=True)
            switches |= trailing
        typed, text = unquoted(argument), call.body
    else:
        typed, text = _target_and_text(call, argument, usage, guesses_names=guesses_names)
        if text is not None and not ended and _SWITCH.fullmatch(text):
            # A switch alone is not text anybody wants in the place of a file's.
            switches |= {_known_switch(text, allowed, usage)}
            text = None
    target = parse_target(typed)
    if not typed or target.block == "":
        raise CommandError("INVALID_TARGET", usage)
    _refuse_half_range(call, target, usage)
    if not target.path:
        typed = f"{call.session.shown_path() or ''}{typed}"
    return EditRequest(target, typed, switches, text)


def refuse_lines(order: EditRequest) -> None:
    """Writing a whole file where lines of it were named would lose the rest."""
    if order.target.first is not None:
        raise CommandError(
            "INVALID_TARGET",
            f"{order.typed} names lines; only /replace and /edit change lines of a file.\n"
            f"Recovery: /replace {order.typed} with the new lines below",
        )


def file_of(call: Call, order: EditRequest) -> FilePath:
    """The file an order means; no path means the open local document."""
    if order.target.path:
        # A plain name may be meant for a new file beside the document.
        new = call.line.name in ("write", "append") and "/" not in order.target.path
        named = partial(locate_named, home_too=not new)
        return _named_file(call, order.target.path, locate if "--new" in order.switches else named)
    location = call.session.location
    if location is None:
        raise CommandError("INVALID_TARGET", "No document open.")
    path = path_of(location.uri)
    if path is None:
        raise CommandError("INVALID_TARGET", "The open document is not a local file.")
    file = locate(call, str(path))
    return file._replace(typed=call.session.shown(location.uri))


def _named_file(call: Call, name: str, find: Callable[[Call, str], FilePath]) -> FilePath:
    file = find(call, name)
    if name.startswith("@") and not is_there(file.real):
        target = resolve_shortcut(call.session, name[1:])
        if target is not None:
            raise CommandError(
                "INVALID_TARGET",
                f"{name} is a shortcut, and only files are edited.\nRecovery: it leads to {target}",
            )
    return file


def whole_file_of(call: Call, order: EditRequest) -> FilePath:
    """The file an order writes whole; it must not appear where a directory was named."""
    file = file_of(call, order)
    if file.typed.endswith("/"):
        raise CommandError(
            "INVALID_TARGET", f"A name that ends in / is a directory's: {file.typed}"
        )
    return file


def unquoted(text: str) -> str:
    """A name without the quotes around it; `"my notes.md"#goals` keeps its block."""
    if text[:1] in ('"', "'"):
        parts = words(text)
        return parts[0].text if len(parts) == 1 else text
    return text


def _without_switches(
    argument: str, allowed: tuple[str, ...], usage: str, *, at_end: bool = False
) -> tuple[str, frozenset[str]]:
    """The argument without the switches it starts with, or ends with, and those."""
    found: set[str] = set()
    while True:
        if at_end:
            rest, _, word = argument.rpartition(" ")
        else:
            word, _, rest = argument.partition(" ")
        if not _SWITCH.fullmatch(word):
            return argument, frozenset(found)
        found.add(_known_switch(word, allowed, usage))
        argument = rest.strip()


def _is_file(call: Call, path: str) -> bool:
    """Whether what may be a name, or a name and a text, names a file within reach."""
    try:
        return is_file(locate_named(call, path).real)
    except CommandError:
        return False


def _refuse_half_range(call: Call, target: Target, usage: str) -> None:
    """A mistyped range must not become part of a new file's name."""
    name, mark, rest = target.path.rpartition(":")
    mistyped = name and _HALF_RANGE.fullmatch(f"{mark}{rest}") is not None
    if mistyped and not is_there(locate_named(call, target.path).real):
        raise CommandError("INVALID_TARGET", f"Not a line range: {target.path}\n{usage}")


def _known_switch(switch: str, allowed: tuple[str, ...], usage: str) -> str:
    if switch in allowed:
        return switch
    wants_help = switch in ("--help", "-h")
    raise CommandError(
        "INVALID_TARGET", usage if wants_help else f"Unknown switch: {switch}\n{usage}"
    )


def _spaced_name(call: Call, argument: str) -> str | None:
    """The longest beginning of a line that names a file with spaces in its name."""
    parts = argument[:NAME_MAX].split(" ")
    names = (" ".join(parts[:count]) for count in range(len(parts) - 1, 1, -1))
    return next((name for name in names if _is_file(call, parse_target(name).path)), None)


def _target_and_text(
    call: Call, argument: str, usage: str, *, guesses_names: bool
) -> tuple[str, str | None]:
    """The one-line form `path text`. A name with spaces that exists is a name.

    `guesses_names` is for a command that mostly names a file and no text.
    """
    split = words(argument)
    if not split:
        return argument, None
    first, quoted = split[0].text, split[0].quoted
    rest = argument[split[0].end :].strip()
    if not rest:
        return first, None
    whole = parse_target(argument)
    if " " in whole.path and _is_file(call, whole.path):
        # No block has a space in its name, so what follows one is text.
        block, _, text = (whole.block or "").partition(" ")
        return argument.removesuffix(f" {text}") if block else argument, text.strip() or None
    path = parse_target(first).path
    # `/edit my file.md` means one file; writing `file.md` into `my` would be a disaster.
    doubtful = not quoted and path and "." not in path.rpartition("/")[2]
    if not doubtful or _is_file(call, path):
        return first, rest
    if (name := _spaced_name(call, argument)) is not None:
        return name, argument[len(name) :].strip()
    if len(rest) <= NAME_MAX and (guesses_names or _FILE_NAME.fullmatch(rest)):
        # What is out of reach says so itself.
        locate(call, whole.path)
        raise CommandError(
            "INVALID_TARGET", f"File not found: {argument}\nQuote names with spaces. {usage}"
        )
    return first, rest

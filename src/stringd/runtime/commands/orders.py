"""What an editing command asks for: which file, which part of it, which switches, what text."""

import re
from typing import Final, NamedTuple

from stringd.documents import Target, parse_target, tokens
from stringd.runtime.call import Call
from stringd.runtime.errors import CommandError
from stringd.runtime.paths import FilePath, locate

_FILE_NAME: Final = re.compile(r"\S*\.[A-Za-z0-9]{1,8}")


class Order(NamedTuple):
    """What an editing command asks for: where, with which switches, and the text."""

    target: Target
    typed: str
    switches: frozenset[str]
    text: str | None


def read_order(
    call: Call, usage: str, allowed: tuple[str, ...], *, guesses_names: bool = False
) -> Order:
    """Read the argument. With a body it is all target; without one, text follows the target."""
    argument, switches = _without_switches(call.argument.strip(), allowed)
    if not argument:
        raise CommandError("INVALID_TARGET", usage)
    text: str | None
    if call.body is not None:
        typed, text = unquoted(argument), call.body
    else:
        typed, text = _target_and_text(call, argument, usage, guesses_names=guesses_names)
    target = parse_target(typed)
    if not target.path:
        if target.first is None and target.block is None:
            raise CommandError("INVALID_TARGET", usage)
        typed = f"{call.session.shown_path() or ''}{typed}"
    return Order(target, typed, switches, text)


def refuse_lines(order: Order) -> None:
    """Writing a whole file where lines of it were named would lose the rest."""
    if order.target.first is not None:
        raise CommandError(
            "INVALID_TARGET",
            f"{order.typed} names lines; only /replace and /edit change lines of a file.\n"
            f"Recovery: /replace {order.typed} with the new lines below",
        )


def file_of(call: Call, order: Order) -> FilePath:
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


def unquoted(text: str) -> str:
    """A name without the quotes around it; `"my notes.md"#goals` keeps its block."""
    if text[:1] in ('"', "'"):
        parts = tokens(text)
        return parts[0] if len(parts) == 1 else text
    return text


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


def _target_and_text(
    call: Call, argument: str, usage: str, *, guesses_names: bool
) -> tuple[str, str | None]:
    """The one-line form `path text`. A name with spaces that exists is a name.

    `guesses_names` is for a command that mostly names a file and no text.
    """
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
    looks_like_name = guesses_names or _FILE_NAME.fullmatch(rest) is not None
    if doubtful and looks_like_name and not locate(call, path).real.is_file():
        raise CommandError(
            "INVALID_TARGET", f"File not found: {argument}\nQuote names with spaces. {usage}"
        )
    return first, rest

"""The text of `/set`: assignments, one a line or fenced for values of several lines."""

import re
from typing import Final, NamedTuple

from stringd.runtime.errors import CommandError

_ASSIGNMENT: Final = re.compile(
    r"(?:\{(?P<braced>[A-Za-z_]\w*)\}|\$(?P<dollar>[A-Za-z_]\w*)|(?P<bare>[A-Za-z_]\w*))"
    r"\s*=(?P<value>.*)",
    re.ASCII | re.DOTALL,
)
_FENCE: Final = re.compile(r"(`{3,})(?:\{([A-Za-z_]\w*)\}|\$([A-Za-z_]\w*))\s*", re.ASCII)


class Assignment(NamedTuple):
    """`persistent` is true of `$NAME`, false of `{x}`; `fenced` values are echoed by their size."""

    name: str
    value: str
    persistent: bool
    fenced: bool = False


def parse_assignments(argument: str, body: str | None) -> list[Assignment]:
    """Every assignment of a `/set`: plain lines first, then fenced values.

    Raises `CommandError` for the first line that is none; nothing is applied then.
    """
    plain = [_plain(argument)] if argument.strip() else []
    fenced: list[Assignment] = []
    lines = iter((body or "").split("\n"))
    for line in lines:
        opening = _FENCE.fullmatch(line.strip())
        if opening is None:
            if line.strip():
                plain.append(_plain(line))
            continue
        ticks, braced, dollar = opening.groups()
        held: list[str] = []
        for inner in lines:
            mark = inner.strip()
            if set(mark) == {"`"} and len(mark) >= len(ticks):
                break
            held.append(inner)
        else:
            raise _invalid(line.strip())
        fenced.append(Assignment(braced or dollar, "\n".join(held), dollar is not None, True))
    return [*plain, *fenced]


def _plain(line: str) -> Assignment:
    match = _ASSIGNMENT.fullmatch(line.strip())
    if match is None:
        raise _invalid(line.strip())
    name = match["braced"] or match["dollar"] or match["bare"]
    return Assignment(name, _unquoted(match["value"].strip()), match["dollar"] is not None)


def _unquoted(value: str) -> str:
    if len(value) >= 2 and value[0] == value[-1] and value[0] in "\"'":
        return value[1:-1]
    return value


def _invalid(line: str) -> CommandError:
    return CommandError(
        "INVALID_PAYLOAD",
        f'Invalid assignment: {line}\nUsage: /set {{var}} = "value" or /set $VAR = "value"',
    )

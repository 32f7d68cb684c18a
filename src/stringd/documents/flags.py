"""Argument text → tokens → flags: one grammar for commands and actions.

Spaces and tabs separate, `'` and `"` quote and disappear, a newline is an ordinary character. There
are not escapes: what a caller means must survive being typed by a model.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

_QUOTED_OR_BARE = re.compile(r"""[^ \t"']+|"([^"]*)"?|'([^']*)'?|[ \t]+""")


@dataclass(frozen=True, slots=True)
class Flags:
    """Parsed arguments. Later duplicates of a flag win."""

    values: Mapping[str, str] = field(default_factory=dict)
    bare: frozenset[str] = frozenset()
    """Flags given without a value; their value reads `true`."""
    positional: tuple[str, ...] = ()
    help: bool = False
    """`--help` or `-h` stood among the tokens."""


def tokens(text: str) -> list[str]:
    """Split argument text. Adjacent runs join; an unclosed quote runs to the end."""
    found: list[str] = []
    current: list[str] = []
    for match in _QUOTED_OR_BARE.finditer(text):
        piece = match[0]
        if piece[0] in " \t":
            found.append("".join(current))
            current = []
        elif piece[0] in "\"'":
            current.append(match[1] or match[2] or "")
        else:
            current.append(piece)
    found.append("".join(current))
    return [token for token in found if token]


def is_flag(token: str) -> bool:
    """`--name` or `-x`; `-5` is a value."""
    if token.startswith("--"):
        return True
    return len(token) == 2 and token[0] == "-" and not token[1].isdigit()


def parse_flags(
    text: str, aliases: Mapping[str, str] | None = None, switches: Collection[str] = ()
) -> Flags:
    """Parse argument text. `aliases` maps a letter to a name; `switches` never take a value."""
    given = tokens(text)
    values: dict[str, str] = {}
    bare: set[str] = set()
    positional: list[str] = []
    options = given.index("--") if "--" in given else len(given)
    at = 0
    while at < options:
        token = given[at]
        at += 1
        if not is_flag(token):
            positional.append(token)
            continue
        name, equals, value = _named(token, aliases or {})
        takes_next = at < options and not is_flag(given[at]) and name not in switches
        if not equals and takes_next:
            value, at = given[at], at + 1
        values[name] = value if equals or takes_next else "true"
        (bare.discard if equals or takes_next else bare.add)(name)
    positional.extend(given[options + 1 :])
    wants_help = any(token in ("--help", "-h") for token in given[:options])
    return Flags(values, frozenset(bare), tuple(positional), wants_help)


def _named(token: str, aliases: Mapping[str, str]) -> tuple[str, bool, str]:
    if token.startswith("--"):
        name, equals, value = token[2:].partition("=")
        return name, bool(equals), value
    return aliases.get(token[1], token[1]), False, ""

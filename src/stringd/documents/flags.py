r"""Argument text → words → flags: one grammar for commands and actions.

Spaces and tabs separate, `'` and `"` quote and disappear, a newline is an ordinary character.
Inside double quotes `\"` and `\\` are escapes, and `\$NAME` is text. A word that begins with a
quote is a value, whatever it looks like. JSON is one word as it is written: `["a b"]`.
"""

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

_PIECE: Final = re.compile(r"""[^ \t"']+|"((?:[^"\\]|\\.)*+)"?|'([^']*)'?""", re.DOTALL)
_ESCAPE: Final = re.compile(r'\\(["\\]|\$(?=[A-Za-z_]))')
_ESCAPED: Final = re.compile(r"\\.", re.DOTALL)
_VARIABLE: Final = re.compile(r"\$[A-Za-z_]")
_JSON_START: Final = re.compile(r"(?:--[\w-]+=)?(?=[\[{])")
_READ_JSON: Final = json.JSONDecoder().raw_decode
MAX_JSON_TRIES: Final = 32
"""Each one that fails may have read all of the text."""


class FlagWord(NamedTuple):
    """One word of argument text."""

    text: str
    quoted: bool = False
    """It begins with a quote, so it is not a flag."""
    variable: bool = False
    """It names a `$variable` outside single quotes."""
    end: int = 0
    """Where it ends in the text."""


@dataclass(frozen=True, slots=True)
class Flags:
    """Parsed arguments. Later duplicates of a flag win."""

    values: Mapping[str, str] = field(default_factory=dict)
    bare: frozenset[str] = frozenset()
    """Flags given without a value; their value reads `true`."""
    positional: tuple[str, ...] = ()
    help: bool = False
    """`--help` or `-h` was among the words."""


def words(text: str) -> list[FlagWord]:
    """Split argument text. Adjacent runs join; an unclosed quote runs to the end."""
    found: list[FlagWord] = []
    at, tries = 0, MAX_JSON_TRIES
    while at < len(text):
        if text[at] in " \t":
            at += 1
            continue
        end = None
        if tries and (start := _JSON_START.match(text, at)) is not None:
            end = _json_end(text, start.end())
            tries -= end is None
        word = _quoted_or_bare(text, at) if end is None else _json_word(text, at, end)
        found.append(word)
        at = word.end
    return found


def _json_word(text: str, start: int, end: int) -> FlagWord:
    raw = text[start:end]
    return FlagWord(raw, variable=_VARIABLE.search(raw) is not None, end=end)


def _json_end(text: str, start: int) -> int | None:
    """Where a JSON list or object that is a word of its own ends."""
    try:
        _, end = _READ_JSON(text, start)
    except (ValueError, RecursionError):
        return None
    return end if end == len(text) or text[end] in " \t" else None


def _quoted_or_bare(text: str, at: int) -> FlagWord:
    parts: list[str] = []
    quoted, variable = text[at] in "\"'", False
    while (match := _PIECE.match(text, at)) is not None:
        piece = match[0]
        if piece[0] == '"':
            part = match[1]
            # An escape that the text ends in is not one.
            part = f"{part}{text[match.end() :]}" if match.end(1) == match.end() else part
            at = len(text) if match.end(1) == match.end() else match.end()
            expanded = _ESCAPED.sub(" ", part)
            part = _ESCAPE.sub(r"\1", part)
        else:
            part = match[2] if piece[0] == "'" else piece
            expanded = "" if piece[0] == "'" else piece
            at = match.end()
        parts.append(part)
        variable = variable or _VARIABLE.search(expanded) is not None
    return FlagWord("".join(parts), quoted, variable, at)


def tokens(text: str) -> list[str]:
    """The texts of the words; quotes around nothing are left out."""
    return [word.text for word in words(text) if word.text]


def is_flag(token: str) -> bool:
    """`--name` or `-x`; `-5` is a value."""
    if token.startswith("--"):
        return True
    return len(token) == 2 and token[0] == "-" and not token[1].isdigit()


def parse_flags(
    text: str, aliases: Mapping[str, str] | None = None, switches: Collection[str] = ()
) -> Flags:
    """Parse argument text. `aliases` maps a letter to a name; `switches` never take a value."""
    return flags_of(words(text), aliases, switches)


def flags_of(
    given: list[FlagWord], aliases: Mapping[str, str] | None = None, switches: Collection[str] = ()
) -> Flags:
    """The flags among words, read as `parse_flags` does."""
    values: dict[str, str] = {}
    bare: set[str] = set()
    positional: list[str] = []
    options = next((at for at, word in enumerate(given) if _bare(word) == "--"), len(given))
    at = 0
    while at < options:
        word = given[at]
        at += 1
        if not is_flag(_bare(word)):
            positional.append(word.text)
            continue
        name, equals, value = _named(word.text, aliases or {})
        takes_next = at < options and not is_flag(_bare(given[at])) and name not in switches
        if not equals and takes_next:
            value, at = given[at].text, at + 1
        values[name] = value if equals or takes_next else "true"
        (bare.discard if equals or takes_next else bare.add)(name)
    positional.extend(word.text for word in given[options + 1 :])
    wants_help = any(_bare(word) in ("--help", "-h") for word in given[:options])
    return Flags(values, frozenset(bare), tuple(positional), wants_help)


def _bare(word: FlagWord) -> str:
    """The word if it may be a flag."""
    return "" if word.quoted else word.text


def _named(token: str, aliases: Mapping[str, str]) -> tuple[str, bool, str]:
    if token.startswith("--"):
        name, equals, value = token[2:].partition("=")
        return name, bool(equals), value
    return aliases.get(token[1], token[1]), False, ""

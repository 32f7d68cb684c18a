"""Action blocks: the text of an `act.<id>` fence → a typed `Action`. Nothing is run here."""

import re
import textwrap
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

LONGEST_LINE: Final = 64 * 1024
"""Longer lines are not read: one expression over a megabyte keeps every other thread waiting."""
_QUOTED: Final = 200
"""As many characters of a line that could not be read are repeated."""
METHODS: Final = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE", "CLI", "MCP"})

_INFO = re.compile(r"act\.([A-Za-z0-9_-]+)(?:\.(response|error))?")
_OPTION = re.compile(r"""(?:^|\s)-(?:H\s+"([^"]*)"|H\s+'([^']*)'|d\s+'([^']*)'|d\s+"([^"]*)")""")
_FIRST_OPTION = re.compile(r"\s-[Hd]\s")
_FIELD = re.compile(r"[ \t]++(\w++)[ \t]*+(?:,[ \t]*+-([A-Za-z])[ \t]*+)?+:[ \t]*+(.*)")
_TYPE = re.compile(r"(\w+(?:\|\w+)*)(?=[\s(=]|$)")
_PART = re.compile(
    r"""\(([^()]*)\)|"([^"]*)"|'([^']*)'"""
    r"""|=[ \t]*(?:"([^"]*)"|'([^']*)'|((?:[^ \t\n]++|[ \t]++(?!["'(]))++))"""
    r"""|(required|optional|(?:dash|code)[ \t]*:[ \t]*(?:true|false))\b"""
)
_BODY = re.compile(r"[ \t]+body:[ \t]*")
# A mistyped field must not go out as a header, so only what is certainly one counts.
_HEADER = re.compile(
    r"""[ \t]*(?:((?:Proxy-)?Authorization|Accept(?:-\w+)?|Content-Type|Cookie|User-Agent|Origin"""
    r"""|Referer|Cache-Control|Prefer|Range|If-[\w-]+|X-[\w-]+|[\w-]+-(?:Key|Token|Version))"""
    r""":[ \t]*(\S.*)|([A-Za-z][\w-]*):[ \t]*([^"'\n]*\$[A-Z_][^"'\n]*))""",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Field:
    """One declared input of an action."""

    name: str
    type: str = "string"
    required: bool = False
    description: str = ""
    default: str | None = None
    alias: str | None = None
    """One letter, for `-x`."""
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[str, ...] = ()
    dash: bool = False
    """Whether its value may begin with `-`, as an option does."""
    code: bool = False
    """Whether its value is meant to be code of the interpreter it is given to."""


@dataclass(frozen=True, slots=True)
class Action:
    """What an action block declares."""

    id: str
    method: str
    """Upper case: GET POST PUT PATCH DELETE CLI, or MCP for a tool of a mounted server."""
    target: str
    """URL template, the whole command line for CLI, a tool's name for MCP."""
    headers: tuple[tuple[str, str], ...] = ()
    body: str | None = None
    fields: tuple[Field, ...] = ()
    response: str | None = None
    """The response template, if the document has one for this id."""
    error: str | None = None
    """The template of a failed call, if the document has one for this id."""

    @property
    def aliases(self) -> dict[str, str]:
        """One-letter alias → field name."""
        return {field.alias: field.name for field in self.fields if field.alias}

    def field(self, name: str) -> Field | None:
        return next((field for field in self.fields if field.name == name), None)


class ActionInfo(NamedTuple):
    """What a fence is for: an action, or one of its templates."""

    id: str
    template: str | None
    """`response`, `error`, or None for the action itself."""


def action_info(info: str) -> ActionInfo | None:
    """What a fence's info string declares, if it is an action's."""
    if not info.startswith("act."):
        return None
    match = _INFO.fullmatch(info)
    return ActionInfo(match[1], match[2]) if match else None


def parse_action(ident: str, text: str) -> tuple[Action | None, list[tuple[int, str]]]:
    """The action of a block's text, and the lines (counted from 0) that could not be read."""
    lines = text.split("\n")
    at = next((n for n, line in enumerate(lines) if line.strip()), len(lines))
    head, at = _joined(lines, at)
    if len(head) > LONGEST_LINE:
        return None, []
    if head[:4].upper().rstrip() == "CLI":
        head, at = _closed(head, lines, at)
    words = head.split(None, 1)
    method = words[0].upper() if words else ""
    if method not in METHODS or len(words) < 2:
        return None, []
    reader = _BlockReader(ident)
    target = words[1].strip() if method in ("CLI", "MCP") else reader.options(words[1])
    reader.rest(lines, at, http=method not in ("CLI", "MCP"))
    action = Action(
        ident, method, target, tuple(reader.headers), reader.body, tuple(reader.fields.values())
    )
    return action, reader.unread


def _joined(lines: list[str], at: int) -> tuple[str, int]:
    """The line at `at` with its backslash continuations, and the index after them."""
    if at >= len(lines):
        return "", at
    parts = [lines[at]]
    while parts[-1].endswith("\\") and at + 1 < len(lines):
        parts[-1] = parts[-1][:-1]
        at += 1
        parts.append(lines[at])
    return "".join(parts), at + 1


def _closed(head: str, lines: list[str], at: int) -> tuple[str, int]:
    """A command whose quotes are closed, with the lines below that it takes for that.

    One that is never closed stays one line: bash says what is wrong with it.
    """
    quote = open_quote(head)
    if not quote:
        return head, at
    text = head
    for index in range(at, len(lines)):
        text = f"{text}\n{lines[index]}"
        quote = open_quote(lines[index], quote)
        if not quote:
            return text, index + 1
    return head, at


def open_quote(text: str, quote: str = "") -> str:
    """The quote that is open after some shell text; `quote` is the one open before it."""
    at = 0
    while at < len(text):
        character = text[at]
        if character == "\\" and quote != "'":
            at += 1
        elif character in "\"'" and quote in ("", character):
            quote = "" if quote else character
        at += 1
    return quote


class _BlockReader:
    """Collects what follows the first line."""

    def __init__(self, ident: str) -> None:
        self.id = ident
        self.headers: list[tuple[str, str]] = []
        self.body: str | None = None
        self.fields: dict[str, Field] = {}
        self.unread: list[tuple[int, str]] = []

    def options(self, text: str) -> str:
        """Take `-H` and `-d` off an HTTP line; the target is what is before them."""
        first = _FIRST_OPTION.search(text)
        if first is None:
            return text.strip()
        self._take(text[first.start() :])
        return text[: first.start()].strip()

    def _take(self, text: str) -> bool:
        found = False
        for option in _OPTION.finditer(text):
            found = True
            header = option[1] if option[1] is not None else option[2]
            if header is None:
                body = option[3] if option[3] is not None else option[4]
                self.body = body if self.body is None else self.body
            elif ":" in header:
                name, _, value = header.partition(":")
                self.headers.append((name.strip(), value.strip()))
        return found

    def rest(self, lines: list[str], at: int, *, http: bool) -> None:
        while at < len(lines):
            line = lines[at]
            if len(line) > LONGEST_LINE:
                self._refuse(at, line)
                at += 1
            elif http and line.lstrip().startswith(("-H ", "-d ")) and self._take(line.strip()):
                at += 1
            elif _BODY.fullmatch(line) and (below := _deeper(lines, at)) > at + 1:
                self.body = self.body or textwrap.dedent("\n".join(lines[at + 1 : below])).strip(
                    "\n"
                )
                at = below
            else:
                self._field(at, line, http=http)
                at += 1

    def _field(self, at: int, line: str, *, http: bool) -> None:
        if not line.strip():
            return
        field = parse_field(line)
        header = _HEADER.fullmatch(line.rstrip()) if field is None and http else None
        if header is not None:
            self.headers.append((header[1] or header[3], header[2] or header[4]))
        elif field is None:
            self._refuse(at, line)
        elif field.name in self.fields:
            text = f'{field.name} of action "{self.id}" is declared twice; the first one counts'
            self.unread.append((at, text))
        else:
            self.fields[field.name] = field

    def _refuse(self, at: int, line: str) -> None:
        text = line.strip()
        shown = text if len(text) <= _QUOTED else f"{text[: _QUOTED - 1]}…"
        self.unread.append((at, f'could not read line of action "{self.id}": {shown}'))


def _deeper(lines: list[str], at: int) -> int:
    """Index after the lines indented deeper than line `at`, trailing blank lines left out."""
    indent = _indent(lines[at])
    end = at + 1
    for index in range(at + 1, len(lines)):
        if lines[index].strip():
            if _indent(lines[index]) <= indent:
                break
            end = index + 1
    return end


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" \t"))


def parse_field(line: str) -> Field | None:
    """One field line: `name, -x: type` then requirement, description and default in any order."""
    match = _FIELD.fullmatch(line.rstrip())
    if match is None:
        return None
    values: dict[str, Any] = {}
    rest = match[3]
    type_ = _TYPE.match(rest)
    if type_ is not None and type_[1] not in ("required", "optional"):
        rest = rest[type_.end() :]
        choices = type_[1].split("|")
        values["type"] = choices[0] if len(choices) == 1 else "string"
        if len(choices) > 1:
            values["choices"] = tuple(choices)
    elif not rest:
        return None
    if not _parts(rest.strip(), values):
        return None
    return Field(name=match[1], alias=match[2], **values)


def _parts(rest: str, values: dict[str, Any]) -> bool:
    """Read what follows the type into `values`; False when something is not understood."""
    position = 0
    while position < len(rest):
        match = _PART.match(rest, position)
        if match is None:
            return False
        position = match.end()
        while position < len(rest) and rest[position] in " \t":
            position += 1
        constraint, double, single, *defaults, word = match.groups()
        if constraint is not None or word is not None:
            parts = (constraint or word or "").split(",")
            if not all(_constrain(part.strip(), values) for part in parts):
                return False
        elif double is not None or single is not None:
            values.setdefault("description", double if double is not None else single)
        else:
            default = next(value for value in defaults if value is not None)
            values.setdefault("default", default if match[6] is None else default.strip())
    return True


def _constrain(part: str, values: dict[str, Any]) -> bool:
    """One item between the parentheses."""
    key, colon, value = (piece.strip() for piece in part.partition(":"))
    if part in ("", "optional", "required"):
        values["required"] = part == "required" or bool(values.get("required"))
    elif key in ("min", "max") and colon:
        try:
            values["minimum" if key == "min" else "maximum"] = float(value)
        except ValueError:
            return False
    elif key in ("dash", "code") and value in ("true", "false"):
        values[key] = value == "true"
    elif "|" in part:
        values["choices"] = tuple(choice.strip() for choice in (value or key).split("|"))
    else:
        return False
    return True

"""A response template → a program: lines with their meaning, loops nested. Nothing runs here.

Expressions are cut into pieces once. Data put into them later is never read as template text.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from stringd.actions.data import PATH, Step, steps

_REFERENCE: Final = re.compile(rf"\{{(?:@([A-Za-z_][\w-]*)|({PATH}))\}}", re.ASCII)
_SHORTCUT_LINE: Final = re.compile(r"\{@([A-Za-z_][\w-]*)\}[ \t]*=(?!=)[ \t]*(.*)", re.ASCII)
_VARIABLE_LINE: Final = re.compile(r"\{([A-Za-z_]\w*)\}[ \t]*=(?!=)[ \t]*(.*)", re.ASCII)
_FOR_LINE: Final = re.compile(
    r"[ \t]*+for:[ \t]*+([A-Za-z_]\w*+)[ \t]++in[ \t]++(\S++)[ \t]*+", re.ASCII
)
_FILE_LINE: Final = re.compile(r"[ \t]*+(save|decode|to):[ \t]*+(.*)", re.ASCII)


@dataclass(frozen=True, slots=True)
class Reference:
    """`{Response.x}`, `{item.x}`, `{name}`, `{name[0]}`: what it means depends on the run."""

    raw: str
    path: tuple[Step, ...]

    @property
    def root(self) -> str:
        return str(self.path[0])


@dataclass(frozen=True, slots=True)
class ShortcutName:
    """`{@name}`."""

    name: str


Expression = tuple[str | Reference | ShortcutName, ...]


@dataclass(frozen=True, slots=True)
class Assign:
    name: str
    value: Expression


@dataclass(frozen=True, slots=True)
class Remember:
    """`{@name} = …`: several parts make a tuple."""

    name: str
    parts: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Loop:
    variable: str
    path: tuple[Step, ...]
    body: "Program"


@dataclass(frozen=True, slots=True)
class Save:
    typed: str


@dataclass(frozen=True, slots=True)
class Decode:
    encoding: str


@dataclass(frozen=True, slots=True)
class Write:
    path: Expression


@dataclass(frozen=True, slots=True)
class Print:
    text: Expression


Line = Assign | Remember | Loop | Save | Decode | Write | Print
Program = tuple[Line, ...]


MAX_LOOP_DEPTH: Final = 8
"""Loops within loops; each multiplies the time of those inside it. A deeper `for:` is text."""


@lru_cache(maxsize=256)
def compile_template(text: str) -> Program:
    """The program of a template. Any text is a program."""
    return _block(iter(text.split("\n")), 0)


def mentions(text: str, *names: str) -> bool:
    """Whether a template refers to `Response.<name>` for one of the names."""
    return any(re.search(rf"Response\.{name}(?![\w-])", text) for name in names)


def _block(lines: Iterator[str], depth: int) -> Program:
    """Lines up to the `end:` that closes this loop, or to the end of the text."""
    collected: list[Line] = []
    for line in lines:
        if depth and line.strip() == "end:":
            break
        collected.append(_line(line, lines, depth))
    return tuple(collected)


def _line(line: str, rest: Iterator[str], depth: int) -> Line:
    if (match := _SHORTCUT_LINE.fullmatch(line)) is not None:
        return Remember(match[1], _parts(expression(match[2].rstrip())))
    if (match := _VARIABLE_LINE.fullmatch(line)) is not None:
        return Assign(match[1], expression(match[2].rstrip()))
    if depth < MAX_LOOP_DEPTH and (match := _FOR_LINE.fullmatch(line)) is not None:
        path = steps(match[2].removeprefix("{").removesuffix("}"))
        if path is not None:
            return Loop(match[1], tuple(path), _block(rest, depth + 1))
    if (match := _FILE_LINE.fullmatch(line)) is not None:
        rest_of_line = match[2].rstrip(" \t")
        if match[1] == "save":
            return Save(rest_of_line)
        if match[1] == "decode":
            return Decode(rest_of_line)
        return Write(expression(rest_of_line))
    return Print(expression(line))


def expression(text: str) -> Expression:
    """Text cut at its references."""
    pieces: list[str | Reference | ShortcutName] = []
    position = 0
    for match in _REFERENCE.finditer(text):
        path = steps(match[2]) if match[2] else None
        if match[2] and path is None:
            continue
        if match.start() > position:
            pieces.append(text[position : match.start()])
        pieces.append(ShortcutName(match[1]) if path is None else Reference(match[0], tuple(path)))
        position = match.end()
    if position < len(text):
        pieces.append(text[position:])
    return tuple(pieces)


def _parts(whole: Expression) -> tuple[Expression, ...]:
    """`(a, b)` in parts, split at the commas the author wrote; anything else is one part."""
    if not whole or not isinstance(whole[0], str) or not isinstance(whole[-1], str):
        return (whole,)
    if not whole[0].startswith("(") or not whole[-1].endswith(")"):
        return (whole,)
    inner = [whole[0][1:], *whole[1:]] if len(whole) > 1 else [whole[0][1:-1]]
    if len(whole) > 1:
        inner[-1] = whole[-1][:-1]
    parts: list[list[str | Reference | ShortcutName]] = [[]]
    depth = 0
    for piece in inner:
        if not isinstance(piece, str):
            parts[-1].append(piece)
            continue
        for text in re.split(r"([(),])", piece):
            depth += (text == "(") - (text == ")")
            if text == "," and depth == 0:
                parts.append([])
            elif text:
                parts[-1].append(text)
    return tuple(_trimmed(part) for part in parts)


def _trimmed(part: list[str | Reference | ShortcutName]) -> Expression:
    """A part without the blanks the author put around it."""
    if part and isinstance(part[0], str):
        part[0] = part[0].lstrip()
    if part and isinstance(part[-1], str):
        part[-1] = part[-1].rstrip()
    return tuple(piece for piece in part if piece != "")

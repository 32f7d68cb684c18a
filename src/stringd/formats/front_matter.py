"""The header between two `---` lines at the very top of a text, read leniently.

A header that is not YAML is read key by key, so one bad line costs one value and never the text
below. What a plain scalar means is the caller's to say.
"""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from stringd.formats.places import Scalar, SourceSyntaxError, Value

MAX_HEADER: Final = 64 * 1024
"""Characters; a longer header is not read. No honest one comes near it."""

_NOT_IN_FRONT: Final = frozenset(":#[]{},'\"")
_PLAIN = re.compile(r"(?:[A-Za-z_][A-Za-z0-9_-]{0,99}+: [A-Za-z][A-Za-z0-9 _./-]*+\n)++")
"""Nothing but keys and bare words: what such lines mean needs no YAML parser."""


class HeaderBounds(NamedTuple):
    """Offsets of the header's text, and of the body below it; all one where there is none."""

    start: int
    end: int
    body: int


def header_bounds(source: str) -> HeaderBounds:
    """Where the header is; a byte order mark belongs neither to it nor to the body."""
    top = 1 if source.startswith("\ufeff") else 0
    if not source.startswith("---", top):
        return HeaderBounds(top, top, top)
    start = _line_end(source, top)
    if source[top:start].rstrip() != "---":
        return HeaderBounds(top, top, top)
    position = start
    while source.startswith("---", position) or (position := _next_rule(source, position)) >= 0:
        end = _line_end(source, position)
        if source[position:end].rstrip() == "---":
            return HeaderBounds(start, position, end)
        position = end
    return HeaderBounds(top, top, top)


def read_header(text: str, scalar: Scalar) -> dict[str, Value]:
    """The map a header's text is; empty when it is something else or too long. Never raises."""
    text = text.replace("\r\n", "\n")
    if not text.strip() or len(text) > MAX_HEADER:
        return {}
    if _PLAIN.fullmatch(text):
        pairs = (line.split(": ", 1) for line in text.splitlines())
        return {key: scalar(value.rstrip()) for key, value in pairs}
    try:
        value = _yaml(text, scalar)
    except SourceSyntaxError:
        return _key_by_key(text, scalar)
    return value if isinstance(value, dict) else {}


def _yaml(text: str, scalar: Scalar) -> Value:
    # Loaded with the first header that needs it.
    from stringd.formats.yaml12 import parse_loosely

    return parse_loosely(text, scalar)


def _line_end(text: str, position: int) -> int:
    found = text.find("\n", position)
    return len(text) if found < 0 else found + 1


def _next_rule(source: str, position: int) -> int:
    found = source.find("\n---", position)
    return -1 if found < 0 else found + 1


def _key_by_key(text: str, scalar: Scalar) -> dict[str, Value]:
    values: dict[str, Value] = {}
    for chunk in _chunks(text):
        found = _pair(chunk[0].rstrip())
        if found is None:
            continue
        try:
            parsed = _yaml("\n".join(chunk), scalar)
        except SourceSyntaxError:
            parsed = None
        if isinstance(parsed, dict):
            values.update(parsed)
        else:
            key, rest = found
            values[key] = scalar(_unquoted(rest)) if rest else _items(chunk[1:])
    return values


def _chunks(text: str) -> Iterator[list[str]]:
    """A line that starts in column one, with the indented lines below it."""
    chunk: list[str] = []
    for line in text.split("\n"):
        if line[:1] not in ("", " ", "\t", "-", "#") and chunk:
            yield chunk
            chunk = []
        chunk.append(line)
    if chunk:
        yield chunk


def _pair(line: str) -> tuple[str, str] | None:
    """Key and value of a `key: value` line."""
    key, colon, value = line.partition(":")
    if not colon or not line or line[0].isspace() or line[0] in _NOT_IN_FRONT:
        return None
    return (key.rstrip(), value.strip()) if not value or value[0].isspace() else None


def _items(lines: list[str]) -> list[Value]:
    """`- x` and `- NAME: text` items, with `key: value` lines of any indentation below them."""
    items: list[Value] = []
    for line in lines:
        text = line.strip()
        pair = _pair(text.removeprefix("-").strip())
        last = items[-1] if items else None
        if text.startswith("-"):
            entry: Value = text[1:].strip()
            items.append({pair[0]: _unquoted(pair[1])} if pair else _unquoted(str(entry)))
        elif pair and isinstance(last, dict):
            last[pair[0]] = _unquoted(pair[1])
    return items


def _unquoted(text: str) -> str:
    text = text.strip()
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "\"'":
        return text[1:-1]
    return text

"""Frontmatter: the YAML between two `---` lines at the very top, read leniently.

Scalars follow YAML 1.2: `on`, `yes` and dates are text. A header that is not YAML is read key by
key, so one bad line costs one value and never the document.
"""

import re
from collections.abc import Iterator
from typing import Any, Final, TypeAlias

from stringd.documents.scan import line_end

Value: TypeAlias = "str | int | float | bool | list[Value] | dict[str, Value] | None"

# The YAML scanner's time grows with the square of its nesting; no honest header comes near this.
MAX_BRACKETS: Final = 1000

_INTEGER = re.compile(r"[-+]?[0-9]{1,18}")
_FLOAT = re.compile(
    r"[-+]?(?:\.[0-9]{1,40}|[0-9]{1,40}(?:\.[0-9]{0,40}|(?=[eE])))(?:[eE][-+]?[0-9]{1,2})?"
)
_KEY = re.compile(r"([^\s:#\[\]{},'\"][^:\n]*?)\s*:(?:\s+(.*))?")
_PLAIN = re.compile(r"(?:[A-Za-z_][A-Za-z0-9_-]{0,99}+: [A-Za-z][A-Za-z0-9 _./-]*+\n)++")
"""Nothing but keys and bare words: what such lines mean needs no YAML parser."""
_WORDS: Final[dict[str, bool | None]] = {
    "true": True,
    "True": True,
    "TRUE": True,
    "false": False,
    "False": False,
    "FALSE": False,
    "null": None,
    "~": None,
    "": None,
}


def body_start(source: str) -> int:
    """Offset of the first character after the frontmatter and a byte order mark."""
    return _bounds(source)[2]


def frontmatter(source: str) -> dict[str, Value]:
    """The header as a map; empty when there is none. Never raises."""
    start, end, _ = _bounds(source)
    text = source[start:end].replace("\r\n", "\n")
    if not text.strip():
        return {}
    if _PLAIN.fullmatch(text):
        pairs = (line.split(": ", 1) for line in text.splitlines())
        return {key: scalar(value.rstrip()) for key, value in pairs}
    try:
        value = _yaml(text)
    except _NotYamlError:
        return _key_by_key(text)
    return value if isinstance(value, dict) else {}


def _bounds(source: str) -> tuple[int, int, int]:
    """Start and end of the header text, and where the body begins."""
    top = 1 if source.startswith("\ufeff") else 0
    if not source.startswith("---", top):
        return top, top, top
    start = line_end(source, top)
    if source[top:start].rstrip() != "---":
        return top, top, top
    position = start
    while source.startswith("---", position) or (position := _next_rule(source, position)) >= 0:
        end = line_end(source, position)
        if source[position:end].rstrip() == "---":
            return start, position, end
        position = end
    return top, top, top


def _next_rule(source: str, position: int) -> int:
    found = source.find("\n---", position)
    return -1 if found < 0 else found + 1


class _NotYamlError(Exception):
    pass


def _yaml(text: str) -> Value:
    if text.count("[") + text.count("{") > MAX_BRACKETS:
        raise _NotYamlError
    from yaml import CSafeLoader, YAMLError
    from yaml import parse as events

    try:
        return _build(iter(list(events(text, Loader=CSafeLoader))))
    except (YAMLError, ValueError) as broken:
        raise _NotYamlError from broken


def _build(events: Iterator[Any]) -> Value:
    """Build values from parser events on an explicit stack: depth costs memory, not recursion."""
    root: list[Value] = []
    stack: list[_Open] = [_Open(root)]
    for event in events:
        match type(event).__name__:
            case "ScalarEvent":
                stack[-1].add(_scalar(event, stack[-1]))
            case "AliasEvent":
                # Expanding aliases lets a few lines become gigabytes; they stay text.
                stack[-1].add(f"*{event.anchor}")
            case "SequenceStartEvent":
                stack.append(stack[-1].nest([]))
            case "MappingStartEvent":
                stack.append(stack[-1].nest({}))
            case "SequenceEndEvent" | "MappingEndEvent":
                stack.pop()
            case "DocumentEndEvent":
                break
    return root[0] if root else None


class _Open:
    """A list or map being filled."""

    def __init__(self, into: list[Value] | dict[str, Value]) -> None:
        self.into = into
        self.key: str | None = None

    def add(self, value: Value) -> None:
        if isinstance(self.into, list):
            self.into.append(value)
        elif self.key is None:
            self.key = value if isinstance(value, str) else ""
        else:
            self.into[self.key] = value
            self.key = None

    def nest(self, child: list[Value] | dict[str, Value]) -> "_Open":
        self.add(child)
        return _Open(child)


def _scalar(event: Any, parent: _Open) -> Value:
    text = str(event.value)
    # Keys and list items are text: `requires: [A, 1]` is a list of names.
    if isinstance(parent.into, list) or parent.key is None or event.style:
        return text
    return scalar(text)


def scalar(text: str) -> Value:
    """What a plain, unquoted scalar means."""
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text):
        return float(text)
    return text


def _key_by_key(text: str) -> dict[str, Value]:
    values: dict[str, Value] = {}
    for chunk in _chunks(text):
        match = _KEY.fullmatch(chunk[0].rstrip())
        if match is None:
            continue
        try:
            parsed = _yaml("\n".join(chunk))
        except _NotYamlError:
            parsed = None
        if isinstance(parsed, dict):
            values.update(parsed)
        else:
            rest = (match[2] or "").strip()
            values[match[1]] = scalar(_unquoted(rest)) if rest else _items(chunk[1:])
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


def _items(lines: list[str]) -> list[Value]:
    """`- x` and `- NAME: text` items, with `key: value` lines of any indentation below them."""
    items: list[Value] = []
    for line in lines:
        text = line.strip()
        pair = _KEY.fullmatch(text.removeprefix("-").strip())
        last = items[-1] if items else None
        if text.startswith("-"):
            entry: Value = text[1:].strip()
            items.append({pair[1]: _unquoted(pair[2] or "")} if pair else _unquoted(str(entry)))
        elif pair and isinstance(last, dict):
            last[pair[1]] = _unquoted(pair[2] or "")
    return items


def _unquoted(text: str) -> str:
    text = text.strip()
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "\"'":
        return text[1:-1]
    return text

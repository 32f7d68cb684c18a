"""JSON lines: one strict JSON value per newline-terminated line, from a peer nobody trusts.

The framing takes bytes and gives lines; it imports no socket. The parser accepts less than the
`json` module does: no duplicate names are lost, no NaN, no lone surrogate, no deep nesting.
"""

import json
import re
from typing import Final, NoReturn

MAX_DEPTH: Final = 128
_MAX_DIGITS: Final = 16

_STRUCTURE: Final = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[{\]}]')


class FramingError(Exception):
    """The peer's bytes are not one line; the text says which way."""


class JsonError(Exception):
    """The line is not acceptable JSON; the text says why."""


class Members(list[tuple[str, object]]):
    """The members of a JSON object in order, duplicates included."""


class LineReader:
    """Collects one line of at most `limit` bytes, its newline included."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._buffer = bytearray()

    def __len__(self) -> int:
        return len(self._buffer)

    def feed(self, data: bytes) -> bytes | None:
        """Take bytes from the peer; the line without its newline once it is complete.

        Bytes after the newline are ignored. Raises `FramingError` when the limit is passed.
        """
        start = len(self._buffer)
        self._buffer += data
        end = self._buffer.find(b"\n", start, self._limit)
        if end >= 0:
            return bytes(self._buffer[:end])
        if len(self._buffer) > self._limit:
            raise FramingError("request exceeds maximum size")
        return None

    def end(self) -> None:
        """The peer closed: fine before the first byte, a `FramingError` after it."""
        if self._buffer:
            raise FramingError("request missing trailing newline")


def parse(line: bytes) -> object:
    """The JSON value of a line; objects come back as `Members`. Raises `JsonError`."""
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise JsonError(f"not UTF-8 at byte {error.start}") from None
    if _depth_exceeds(line, MAX_DEPTH):
        raise JsonError(f"nested deeper than {MAX_DEPTH}")
    try:
        value: object = json.loads(
            text,
            object_pairs_hook=Members,
            parse_constant=_refuse_constant,
            parse_int=_small_number,
            parse_float=lambda _: 0.0,
        )
    except (ValueError, RecursionError) as error:
        raise JsonError(str(error)) from None
    if b"\\u" in line:
        _refuse_lone_surrogates(value)
    return value


def _small_number(digits: str) -> int:
    """No field has a large number, and reading a very long one takes very long."""
    return int(digits) if len(digits) < _MAX_DIGITS else 10**_MAX_DIGITS


def unique(members: Members, names: frozenset[str] | None = None) -> dict[str, object]:
    """The members as a dict, only those in `names` if given. A duplicate is a `JsonError`."""
    found: dict[str, object] = {}
    for name, value in members:
        if names is not None and name not in names:
            continue
        if name in found:
            raise JsonError(f"duplicate field {json.dumps(name)}")
        found[name] = value
    return found


def _refuse_constant(name: str) -> NoReturn:
    raise JsonError(f"{name} is not JSON")


def _depth_exceeds(line: bytes, limit: int) -> bool:
    # Ordinary requests hold fewer brackets than the limit, so the scan is for odd ones alone.
    if line.count(b"[") + line.count(b"{") <= limit:
        return False
    depth = 0
    for match in _STRUCTURE.finditer(line):
        token = match.group()
        if token in (b"[", b"{"):
            depth += 1
            if depth > limit:
                return True
        elif token in (b"]", b"}"):
            depth -= 1
    return False


def _refuse_lone_surrogates(value: object) -> None:
    try:
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        raise JsonError("lone UTF-16 surrogate") from None

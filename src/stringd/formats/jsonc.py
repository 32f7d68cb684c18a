"""JSON with comments. Comments become spaces, so places stay true; duplicate keys are refused."""

import json
import re
from typing import Any, Final

from stringd.formats.places import MAX_DEPTH, Places, SourcePlace, SourceSyntaxError
from stringd.formats.shapes import Path

_COMMENT_OR_STRING: Final = re.compile(r'"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*.*?(?:\*/|\Z)', re.DOTALL)


def strip_comments(text: str) -> str:
    """JSONC as JSON, every other character where it was."""

    def blank(match: re.Match[str]) -> str:
        found = match[0]
        return found if found.startswith('"') else re.sub(r"[^\n]", " ", found)

    return _COMMENT_OR_STRING.sub(blank, text)


def parse_json(text: str) -> tuple[Any, Places]:
    bare = strip_comments(text)
    reader = _JsonReader(bare)
    try:
        value = json.loads(bare, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        raise SourceSyntaxError(error.msg, SourcePlace(error.lineno, error.colno)) from None
    except RecursionError:
        raise SourceSyntaxError("values are nested too deeply", None) from None
    except ValueError:
        raise SourceSyntaxError("a number has too many digits", None) from None
    reader.read((), 0)
    return value, reader.places


def _no_constant(name: str) -> Any:
    raise SourceSyntaxError(f"{name} is not a JSON value", None)


class _JsonReader:
    """Walks text that is known to be JSON and notes where each value begins."""

    _token = re.compile(r'\s*([{}\[\],:]|"(?:\\.|[^"\\])*"|[^\s{}\[\],:"]+)')

    def __init__(self, text: str) -> None:
        self.places: Places = {}
        self._text = text
        self._at = 0
        self._line = 1
        self._line_start = 0
        self._seen = 0

    def read(self, path: Path, depth: int) -> None:
        if depth > MAX_DEPTH:
            raise SourceSyntaxError("values are nested too deeply", self._place(self._at))
        token = self._next()
        self.places[path] = self._place(self._at - len(token))
        if token == "{":  # noqa: S105
            self._members(path, depth)
        elif token == "[":  # noqa: S105
            self._elements(path, depth)

    def _members(self, path: Path, depth: int) -> None:
        keys: set[str] = set()
        token = self._next()
        while token != "}":  # noqa: S105
            token = self._next() if token == "," else token  # noqa: S105
            key = json.loads(token)
            place = self._place(self._at - len(token))
            if key in keys:
                raise SourceSyntaxError(f'the key "{key}" is given twice', place)
            keys.add(key)
            self._next()
            self.read((*path, key), depth + 1)
            self.places[(*path, key)] = place
            token = self._next()

    def _elements(self, path: Path, depth: int) -> None:
        index = 0
        while (before := self._peek()) != "]":
            if before == ",":
                self._next()
            self.read((*path, index), depth + 1)
            index += 1
        self._next()

    def _next(self) -> str:
        match = self._token.match(self._text, self._at)
        if match is None:
            raise SourceSyntaxError("unexpected end of text", None)
        self._at = match.end()
        return match[1]

    def _peek(self) -> str:
        match = self._token.match(self._text, self._at)
        return "" if match is None else match[1]

    def _place(self, offset: int) -> SourcePlace:
        newlines = self._text.count("\n", self._seen, offset)
        if newlines:
            self._line += newlines
            self._line_start = self._text.rindex("\n", 0, offset) + 1
        self._seen = max(self._seen, offset)
        return SourcePlace(self._line, offset - self._line_start + 1)

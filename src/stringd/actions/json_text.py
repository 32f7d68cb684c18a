"""Writing a body template: the author's text is followed, values are escaped for where they land.

Inside a JSON string a value is escaped once, inside a string quoted within one (`\\"…\\"`) twice.
Where a JSON value is expected, what reads as JSON goes in as it is and all else as a string.
"""

import msgspec


class JsonText:
    """Collects a body. `strict` says that the whole template is JSON."""

    def __init__(self, *, strict: bool) -> None:
        self._strict = strict
        self._pieces: list[str] = []
        self._inside = False
        self._nested = False
        self._escaped = False

    def text(self) -> str:
        return "".join(self._pieces)

    def author(self, text: str) -> None:
        """Text of the template: its quotes count."""
        self._pieces.append(text)
        for character in text:
            if self._escaped:
                self._escaped = False
                self._nested ^= character == '"'
            elif character == "\\" and self._inside:
                self._escaped = True
            elif character == '"':
                self._inside = not self._inside
                self._nested = False

    def raw(self, text: str) -> None:
        """A value that is already escaped."""
        self._pieces.append(text)

    def value(self, text: str, items: str | None = None) -> None:
        """A value, escaped for this place; `items` is JSON for where a value is expected."""
        if items is not None and self._strict and not self._inside:
            self._pieces.append(items)
        elif self._inside:
            escaped = _escape(text)
            self._pieces.append(_escape(escaped) if self._nested else escaped)
        elif self._strict and not _is_json(text):
            self._pieces.append(f'"{_escape(text)}"')
        else:
            self._pieces.append(text)


def _escape(text: str) -> str:
    return msgspec.json.encode(text.encode("utf-8", "replace").decode()).decode()[1:-1]


def _is_json(text: str) -> bool:
    try:
        msgspec.json.decode(text.encode("utf-8", "replace"))
    except msgspec.DecodeError:
        return False
    return True

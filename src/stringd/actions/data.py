"""Looking into an action's answer: `Response.body.items[0].name`."""

import re
from collections.abc import Callable
from typing import Any, Final

import msgspec

PATH: Final = r"[A-Za-z_][\w-]*(?:\.[\w-]+|\[\d+\])*"
_STEP: Final = re.compile(
    r"([A-Za-z_][\w-]*)|\.([A-Za-z_][\w-]*)|\.(\d{1,9})(?![\w-])|\[(\d{1,9})\]|\.([\w-]+)"
)


class Missing:
    """What a path that leads nowhere yields; unlike null it is reported."""


MISSING: Final = Missing()
Step = str | int


def steps(path: str) -> list[Step] | None:
    """A path taken apart; None when it is none."""
    text = path.strip().removeprefix("$.")
    found: list[Step] = []
    position = 0
    while position < len(text):
        match = _STEP.match(text, position)
        if match is None or (match[1] and position):
            return None
        key = match[1] or match[2] or match[5]
        found.append(key if key is not None else int(match[3] or match[4]))
        position = match.end()
    return found or None


MAX_PIECES: Final = 200_000
"""As many a text is split into; what is beyond is left out."""


def split_text(text: str, how: str) -> Any:
    """A text in pieces, as a step of a path asks for them; `MISSING` for any other step."""
    match how:
        case "lines":
            return [line.removesuffix("\r") for line in _pieces(text.rstrip("\n"), "\n")]
        case "words":
            return text.split(None, MAX_PIECES)[:MAX_PIECES]
        case "tabs":
            return _pieces(text, "\t")
        case "list":
            return [piece.strip() for piece in _pieces(text, ",")]
        case "json":
            found = parsed(text)
            return MISSING if found is text else found
        case _:
            return MISSING


def _pieces(text: str, separator: str) -> list[str]:
    return text.split(separator, MAX_PIECES)[:MAX_PIECES] if text else []


Split = Callable[[str, str], Any]


def walk(value: Any, path: list[Step], split: Split = split_text) -> Any:
    """What is at the end of a path, or `MISSING`. A step into a text splits it."""
    for step in path:
        if isinstance(step, int) and isinstance(value, list):
            if step >= len(value):
                return MISSING
            value = value[step]
        elif step == "length" and isinstance(value, list):
            value = len(value)
        elif isinstance(value, dict) and str(step) in value:
            value = value[str(step)]
        elif isinstance(value, str) and isinstance(step, str):
            value = split(value, step)
        else:
            return MISSING
    return value


def shown(value: Any) -> str:
    """A value as templates print it: null and missing are empty, containers compact JSON."""
    if value is None or value is MISSING:
        return ""
    if isinstance(value, str):
        return value
    return msgspec.json.encode(value).decode()


def parsed(text: str) -> Any:
    """JSON if the text is JSON, else the text itself."""
    try:
        return msgspec.json.decode(text.encode("utf-8", "surrogateescape"))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return text

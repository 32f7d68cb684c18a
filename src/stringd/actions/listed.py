"""Values of several items: fields of type `list`, `lines` and `tuple`, from what a caller typed."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from stringd.actions.errors import payload_error
from stringd.actions.place import ActionContext, ListValue, Value, text_of
from stringd.actions.templates import Hole, cut
from stringd.documents import Action, Field

LIST_TYPES: Final = frozenset({"list", "lines"})


def listed(field: Field, value: Value) -> ListValue | None:
    """The items of a value for a field of type `list` or `lines`; None when it is not a list."""
    if isinstance(value, ListValue):
        return value
    separator = "\n" if field.type == "lines" else ","
    if isinstance(value, tuple):
        return ListValue(value, separator)
    if value.lstrip().startswith("["):
        return _from_json(value, separator)
    pieces = value.splitlines() if field.type == "lines" else value.split(",")
    trimmed = (piece.rstrip() if field.type == "lines" else piece.strip() for piece in pieces)
    return ListValue((piece for piece in trimmed if piece), separator)


def is_json(text: str) -> bool:
    """Whether a text is JSON."""
    return _decoded(text) is not _NOT_JSON


def with_parts(field: Field, value: Value) -> Value:
    """What a caller gives a field of type `tuple`: a JSON list is one too."""
    if field.type != "tuple" or not isinstance(value, str) or not value.startswith("["):
        return value
    found = _from_json(value, ",")
    return value if found is None else tuple(found)


def check_parts(action: Action, values: Mapping[str, Value], place: ActionContext) -> None:
    """Refuse a tuple with fewer values than the request or command uses. Raises `ActionError`.

    The missing ones would be sent as nothing.
    """
    for field in action.fields:
        value = values.get(field.name)
        if field.type != "tuple" or value is None:
            continue
        needed = 1 + max(_positions(action, field.name), default=0)
        held = 1 if isinstance(value, str) else len(value)
        if held < needed:
            example = ", ".join(f'"{letter}"' for letter in "abcdefgh"[:needed])
            raise payload_error(
                f"--{field.name} takes {needed} values together; got "
                f'{"1" if held == 1 else held}: "{text_of(value)[:80]}".\n'
                f"Usage: {place.label} --{field.name} @<shortcut of an answer>, or a list: "
                f"--{field.name} [{example}]"
            )


def _positions(action: Action, name: str) -> Iterable[int]:
    texts = (action.target, action.body or "", *(value for _, value in action.headers))
    pieces = (piece for text in texts for piece in cut(text))
    return [
        piece.position
        for piece in pieces
        if isinstance(piece, Hole) and piece.name == name and piece.position is not None
    ]


_NOT_JSON: Final = object()


def _decoded(text: str) -> Any:
    try:
        return msgspec.json.decode(text.encode("utf-8", "replace"))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _NOT_JSON


def _from_json(text: str, separator: str) -> ListValue | None:
    found = _decoded(text)
    if not isinstance(found, list):
        return None
    items = (
        each if isinstance(each, str) else msgspec.json.encode(each).decode() for each in found
    )
    return ListValue(items, separator, text.strip())

"""Mistakes in the fields of actions and in what templates ask of an answer."""

import re
from collections.abc import Iterator
from difflib import get_close_matches
from typing import Final

from stringd.actions.binding import fits
from stringd.actions.errors import ActionError
from stringd.actions.templates import Hole, Variable, cut
from stringd.documents import Document, Field
from stringd.documents.action_blocks import Action, action_info
from stringd.documents.diagnostics import Finding

_TYPES: Final = (
    *("string", "path", "number", "float", "integer", "int", "boolean", "bool"),
    *("json", "list", "lines", "tuple", "array", "object"),
)
_ANSWER: Final = re.compile(r"\bResponse\.([A-Za-z_]\w*)")
_OF_REQUESTS: Final = ("status", "body")
_OF_COMMANDS: Final = (*_OF_REQUESTS, "exit_code", "stdout", "stderr")
_OF_FAILURES: Final = ("code", "error")


def field_mistakes(document: Document) -> Iterator[Finding]:
    """Types that are probably misspelt, defaults a call would be refused for, and parts of an
    answer that there are not."""
    for fence in document.fences.all:
        info = action_info(fence.info)
        action = document.actions.get(info.id) if info is not None else None
        if info is None or action is None:
            continue
        body = document.source[fence.body_start : fence.body_end]
        if info.template is None:
            yield from _fields(action, body, fence.body_start)
        else:
            label = f"act.{info.id}.{info.template}"
            known = _OF_COMMANDS if action.method == "CLI" else _OF_REQUESTS
            known = (*known, *_OF_FAILURES) if info.template == "error" else known
            yield from _answers(label, known, body, fence.body_start)


def _fields(action: Action, body: str, start: int) -> Iterator[Finding]:
    for field in action.fields:
        place = re.search(rf"^[ \t]+{field.name}[ \t]*[,:]", body, re.MULTILINE)
        at = start + (place.start() if place else 0)
        near = get_close_matches(field.type, _TYPES, n=1, cutoff=0.75)
        if field.type not in _TYPES and near:
            what = f"act.{action.id}: {field.name} has the type {field.type}; is it {near[0]}?"
            yield Finding(at, "UNKNOWN_TYPE", what)
        problem = _default_problem(field)
        if problem is not None:
            yield Finding(at, "INVALID_DEFAULT", f"act.{action.id}: {problem}")


def _default_problem(field: Field) -> str | None:
    """What a call would be refused for, if the default is written out."""
    default = field.default
    if not default or any(isinstance(piece, Hole | Variable) for piece in cut(default)):
        return None
    try:
        fits(field, default)
    except ActionError as error:
        return f"the default of {field.name} does not fit: {error.message.partition(chr(10))[0]}"
    return None


def _answers(label: str, known: tuple[str, ...], body: str, start: int) -> Iterator[Finding]:
    seen: set[str] = set()
    for match in _ANSWER.finditer(body):
        name = match[1]
        if name not in known and name not in seen:
            seen.add(name)
            what = f"{label}: an answer has no {name}; it has {', '.join(known)}"
            yield Finding(start + match.start(), "UNKNOWN_ANSWER", what)

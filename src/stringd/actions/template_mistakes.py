"""Mistakes in the templates of actions that calls would pass over in silence."""

import re
from collections.abc import Iterator
from typing import Final

from stringd.actions.templates import Hole, cut
from stringd.documents import Document
from stringd.documents.action_blocks import Action, action_info
from stringd.documents.diagnostics import Finding

_LOOP: Final = re.compile(r"[ \t]*+for:[ \t]*+(.*+)")
_LOOP_HEAD: Final = re.compile(r"([A-Za-z_]\w*+)[ \t]++in[ \t]++\S++[ \t]*+")
_END: Final = re.compile(r"[ \t]*+end:?[ \t]*+")
_UNCLOSED: Final = re.compile(r"\{([A-Za-z_]\w*+)[^{}]*+(?=\{|$)")


def template_mistakes(document: Document) -> Iterator[Finding]:
    """Holes no field defines, values without an end, loops without a list or an end."""
    for fence in document.fences.all:
        info = action_info(fence.info)
        if info is None:
            continue
        body = document.source[fence.body_start : fence.body_end]
        action = document.actions.get(info.id)
        if info.template is not None:
            yield from _in_template(f"act.{info.id}.{info.template}", body, fence.body_start)
        elif action is not None:
            yield from _undefined(action, body, fence.body_start)


def _undefined(action: Action, body: str, start: int) -> Iterator[Finding]:
    """Only an action that declares fields says what its callers may give."""
    declared = {field.name for field in action.fields}
    if not declared:
        return
    seen: set[str] = set()
    for text in (action.target, action.body or "", *(value for _, value in action.headers)):
        for piece in cut(text):
            if not isinstance(piece, Hole) or not piece.name.isidentifier():
                continue
            if piece.name not in declared | seen:
                seen.add(piece.name)
                at = start + max(body.find(piece.raw), 0)
                known = ", ".join(sorted(declared))
                what = f"act.{action.id}: no field defines {piece.raw}; its fields are {known}"
                yield Finding(at, "UNKNOWN_FIELD", what)


def _in_template(label: str, body: str, start: int) -> Iterator[Finding]:
    loops: list[int] = []
    items = {"Response"}
    position = start
    for line in body.split("\n"):
        loop = _LOOP.fullmatch(line)
        if loop is not None:
            loops.append(position)
            head = _LOOP_HEAD.fullmatch(loop[1])
            if head is not None:
                items.add(head[1])
            else:
                yield Finding(
                    position,
                    "LOOP_WITHOUT_LIST",
                    f"{label}: write a loop as for: item in Response.body.items",
                )
        elif _END.fullmatch(line) and line.strip():
            if loops:
                loops.pop()
            else:
                yield Finding(position, "END_WITHOUT_LOOP", f"{label}: end: without a for:")
        for unclosed in _UNCLOSED.finditer(line):
            if unclosed[1] in items:
                what = f"{label}: {{{unclosed[1]}… needs a closing }}"
                yield Finding(position, "UNCLOSED_VALUE", what)
        position += len(line) + 1
    for opened in loops:
        yield Finding(opened, "LOOP_WITHOUT_END", f"{label}: for: without an end:")

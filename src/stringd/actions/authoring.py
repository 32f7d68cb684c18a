"""What the author of a document should know about its actions before anybody calls them."""

from collections.abc import Iterator

from stringd.actions.command_line import unsafe_holes
from stringd.actions.field_mistakes import field_mistakes
from stringd.actions.template_mistakes import template_mistakes
from stringd.documents import Document
from stringd.documents.action_blocks import action_info
from stringd.documents.diagnostics import Diagnostic, Finding, diagnose


def action_diagnostics(document: Document) -> tuple[Diagnostic, ...]:
    """The holes that calls would be refused for, and what they would pass over in silence."""
    mistakes = (*template_mistakes(document), *field_mistakes(document))
    return diagnose(document.source, (*_unsafe(document), *mistakes))


def _unsafe(document: Document) -> Iterator[Finding]:
    names = (*document.requires, *(each.name for each in document.env))
    seen: set[str] = set()
    for fence in document.fences.all:
        info = action_info(fence.info)
        action = document.actions.get(info.id) if info and info.template is None else None
        if action is None or action.id in seen:
            continue
        seen.add(action.id)
        body = document.source[fence.body_start : fence.body_end]
        at = fence.body_start + len(body) - len(body.lstrip())
        for refusal in unsafe_holes(action, dict.fromkeys(names, "")):
            yield Finding(at, "UNSAFE_HOLE", f"act.{action.id}: {refusal}")

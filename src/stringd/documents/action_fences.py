"""The actions of a document: its action fences, each joined with its templates."""

from collections.abc import Iterable
from dataclasses import replace

from stringd.documents.action_blocks import Action, action_info, parse_action
from stringd.documents.diagnostics import Finding
from stringd.documents.scan import Fence, occurrences


def read_actions(source: str, fences: Iterable[Fence]) -> tuple[dict[str, Action], list[Finding]]:
    """Actions by id, in document order, and what is wrong with those that could not be read."""
    actions: dict[str, Action] = {}
    templates: dict[tuple[str, str], str] = {}
    findings: list[Finding] = []
    for fence in fences:
        info = action_info(fence.info)
        if info is None:
            continue
        if not fence.closed:
            findings.append(_bad_action(fence, info.id))
            continue
        text = _fence_text(source, fence)
        if info.template is not None:
            templates.setdefault((info.id, info.template), text)
        elif info.id not in actions:
            action, unread = parse_action(info.id, text)
            if action is not None:
                actions[info.id] = action
            else:
                findings.append(_bad_action(fence, info.id))
            starts = _line_starts(source, fence) if unread else []
            findings += [Finding(starts[line], "INVALID_FIELD", why) for line, why in unread]
    for ident in actions.keys() & {ident for ident, _ in templates}:
        response, error = (templates.get((ident, kind)) for kind in ("response", "error"))
        actions[ident] = replace(actions[ident], response=response, error=error)
    return actions, findings


def _bad_action(fence: Fence, ident: str) -> Finding:
    text = f'could not parse action definition for "{ident}"'
    return Finding(fence.start, "INVALID_ACTION_BLOCK", text)


def _fence_text(source: str, fence: Fence) -> str:
    """The lines inside a fence, without the fence's own indentation and with LF newlines."""
    text = source[fence.body_start : fence.body_end].replace("\r\n", "\n").removesuffix("\n")
    if not fence.indent:
        return text
    lines = text.split("\n")
    return "\n".join(_dedented(line, fence.indent) for line in lines)


def _dedented(line: str, indent: int) -> str:
    spaces = len(line) - len(line.lstrip(" \t"))
    return line[min(indent, spaces) :]


def _line_starts(source: str, fence: Fence) -> list[int]:
    body = occurrences(source[fence.body_start : fence.body_end], "\n")
    return [fence.body_start, *(fence.body_start + hit + 1 for hit in body)]

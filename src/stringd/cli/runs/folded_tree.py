"""The flow of a run as rows, folded around what works when there is little room."""

from collections import Counter
from collections.abc import Iterable
from typing import Final, NamedTuple

from stringd.cli.runs.state import Node, State


class FlowRow(NamedTuple):
    """A step at its depth, or (without a node) a text about steps that are not shown."""

    depth: int
    state: State
    name: str
    note: str = ""
    folded: bool = False


_WORDS: Final[dict[State, str]] = {
    "running": "at work",
    "failed": "failed",
    "lost": "cut off",
    "done": "done",
    "waiting": "to come",
}


def tree_rows(root: Node, room: int) -> list[FlowRow]:
    """As many rows as there is room for: what works and its flows first, then what is near it."""
    rows = list(_rows(root, 0))
    if len(rows) <= room:
        return rows
    kept: set[int] = set()
    for index in _by_importance(rows):
        if _length(len(rows), kept | {index}) <= room:
            kept.add(index)
    if not kept:
        return [_fold(rows)][:room]
    return list(_with_folds(rows, kept))


def _rows(node: Node, depth: int) -> Iterable[FlowRow]:
    yield FlowRow(depth, node.shown_state, node.name, _note(node))
    for child in node.children:
        yield from _rows(child, depth + 1)


def _note(node: Node) -> str:
    tokens = node.usage.prompt_tokens + node.usage.completion_tokens
    parts = [node.kind if node.kind != "agent" else ""]
    if node.kind == "cycle" and node.round:
        parts.append(f"round {node.round}" + (f" of {node.rounds}" if node.rounds else ""))
    elif node.times > 1:
        parts.append(f"×{node.times}")
    parts.append(f"{tokens} tokens" if tokens else "")
    return " · ".join(part for part in parts if part)


def _by_importance(rows: list[FlowRow]) -> list[int]:
    busy = [n for n, row in enumerate(rows) if row.state in ("running", "failed", "lost")]
    leaves = [n for n in busy if n + 1 == len(rows) or rows[n + 1].depth <= rows[n].depth]
    near = leaves or busy or [next((n for n, r in enumerate(rows) if r.state == "waiting"), 0)]

    def rank(index: int) -> tuple[int, int]:
        distance = min(abs(index - each) for each in near)
        return (0 if index in leaves else 1 if index in busy else 2), distance

    return sorted(range(len(rows)), key=rank)


def _length(count: int, kept: set[int]) -> int:
    gaps = sum(n not in kept and (n == 0 or n - 1 in kept) for n in range(count))
    return len(kept) + gaps


def _with_folds(rows: list[FlowRow], kept: set[int]) -> Iterable[FlowRow]:
    gap: list[FlowRow] = []
    for index, row in enumerate(rows):
        if index not in kept:
            gap.append(row)
            continue
        if gap:
            yield _fold(gap)
            gap = []
        yield row
    if gap:
        yield _fold(gap)


def _fold(rows: list[FlowRow]) -> FlowRow:
    counted = Counter(row.state for row in rows)
    told = [f"{counted[state]} {word}" for state, word in _WORDS.items() if counted[state]]
    return FlowRow(min(row.depth for row in rows), "waiting", f"… {', '.join(told)}", folded=True)

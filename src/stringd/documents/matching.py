"""Which lines two texts share: a longest common subsequence, found as Myers does it.

Equal ends are cut off first, then lines only one side has (they can never match), so ordinary edits
of huge files leave little to do. If that little is still too different, lines that occur once on
both sides are taken as anchors and only the stretches between them are compared: still a correct
diff, no longer always the shortest.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from math import isqrt
from typing import Final

# Cost grows with the square of the differences; 500 of them take some tens of milliseconds.
MAX_DIFFERENCES: Final = 500
MAX_EFFORT: Final = MAX_DIFFERENCES**2

Pairs = list[tuple[int, int]]


def common_lines(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Index pairs of lines kept, increasing on both sides."""
    shorter = min(len(old), len(new))
    head = next((at for at, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), shorter)
    tail = 0
    while tail < shorter - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    yield from ((at, at) for at in range(head))
    yield from _middle(old, new, head, tail)
    yield from zip(range(len(old) - tail, len(old)), range(len(new) - tail, len(new)), strict=True)


def _middle(old: Sequence[str], new: Sequence[str], head: int, tail: int) -> Pairs:
    in_old = set(old[head : len(old) - tail])
    in_new = set(new[head : len(new) - tail])
    rows = [at for at in range(head, len(old) - tail) if old[at] in in_new]
    columns = [at for at in range(head, len(new) - tail) if new[at] in in_old]
    matched = _match([old[at] for at in rows], [new[at] for at in columns])
    return [(rows[row], columns[column]) for row, column in matched]


def _match(old: list[str], new: list[str]) -> Pairs:
    if not old or not new:
        return []
    shortest = _myers(old, new, MAX_DIFFERENCES)
    return _anchored(old, new) if shortest is None else shortest


def _anchored(old: list[str], new: list[str]) -> Pairs:
    anchors = _anchors(old, new)
    pairs: Pairs = []
    effort = MAX_EFFORT
    row = column = 0
    for next_row, next_column in [*anchors, (len(old), len(new))]:
        limit = isqrt(effort)
        gap = _myers(old[row:next_row], new[column:next_column], limit)
        differences = next_row - row + next_column - column - 2 * len(gap or [])
        effort -= min(differences, limit) ** 2
        pairs += [(row + a, column + b) for a, b in gap or []]
        if next_row < len(old):
            pairs.append((next_row, next_column))
        row, column = next_row + 1, next_column + 1
    return pairs


def _anchors(old: list[str], new: list[str]) -> Pairs:
    """Lines that occur once on both sides, the longest increasing run of them."""
    here, there = Counter(old), Counter(new)
    place = {line: at for at, line in enumerate(new) if there[line] == 1}
    unique = [(at, place[line]) for at, line in enumerate(old) if here[line] == 1 and line in place]
    ends: list[int] = []
    last: list[int] = []
    before: list[int] = []
    for index, (_, column) in enumerate(unique):
        at = bisect_left(ends, column)
        before.append(last[at - 1] if at else -1)
        ends[at : at + 1] = [column]
        last[at : at + 1] = [index]
    run: Pairs = []
    index = last[-1] if last else -1
    while index >= 0:
        run.append(unique[index])
        index = before[index]
    return run[::-1]


def _myers(old: Sequence[str], new: Sequence[str], limit: int) -> Pairs | None:
    """The shortest edit script as kept pairs; None if it needs more than `limit` differences."""
    rows, columns = len(old), len(new)
    furthest = {1: 0}
    trace: list[dict[int, int]] = []
    for difference in range(min(limit, rows + columns) + 1):
        trace.append(furthest.copy() if difference else {})
        for diagonal in range(-difference, difference + 1, 2):
            down = diagonal == -difference or (
                diagonal != difference and furthest[diagonal - 1] < furthest[diagonal + 1]
            )
            row = furthest[diagonal + 1] if down else furthest[diagonal - 1] + 1
            column = row - diagonal
            while row < rows and column < columns and old[row] == new[column]:
                row, column = row + 1, column + 1
            furthest[diagonal] = row
            if row >= rows and column >= columns:
                return _walk_back(trace, rows, columns)
    return None


def _walk_back(trace: list[dict[int, int]], row: int, column: int) -> Pairs:
    pairs: Pairs = []
    for difference in range(len(trace) - 1, 0, -1):
        furthest = trace[difference]
        diagonal = row - column
        down = diagonal == -difference or (
            diagonal != difference and furthest[diagonal - 1] < furthest[diagonal + 1]
        )
        before = diagonal + 1 if down else diagonal - 1
        start = furthest[before]
        stop = start if down else start + 1
        while row > stop:
            row, column = row - 1, column - 1
            pairs.append((row, column))
        row, column = start, start - before
    while row > 0 and column > 0:
        row, column = row - 1, column - 1
        pairs.append((row, column))
    return pairs[::-1]

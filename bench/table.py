"""What a benchmark reports: a row a comparison, always against a floor or peer of the same run."""

from collections.abc import Iterable
from typing import NamedTuple


class Row(NamedTuple):
    what: str
    ours: str
    peer: str
    ratio: float | None
    target: str


def markdown(title: str, rows: Iterable[Row]) -> str:
    """One Markdown table; a row without a ratio shows a dash."""
    lines = [f"## {title}", "", "| what | ours | peer | ratio | target |", "|---|---|---|--:|---|"]
    for row in rows:
        ratio = "–" if row.ratio is None else f"{row.ratio:.2f}"
        lines.append(f"| {row.what} | {row.ours} | {row.peer} | {ratio} | {row.target} |")
    return "\n".join([*lines, ""])

"""One picture of a run, as lines that fit the terminal: the prompt first, the rest as it fits."""

import time
from collections.abc import Iterable
from typing import Final, NamedTuple

from rich.console import Console, Group, RenderableType
from rich.markdown import Markdown
from rich.padding import Padding
from rich.text import Text

from stringd.cli.runs.calls import Remark, Said, ShownCall, ShownThought, Used
from stringd.cli.runs.folded_tree import FlowRow, tree_rows
from stringd.cli.runs.plain_view import question
from stringd.cli.runs.state import RunState
from stringd.cli.streams import visible
from stringd.wire.runs import messages as m

_MARKS: Final = {
    "waiting": ("·", "dim"),
    "done": ("✓", "green"),
    "failed": ("✗", "red"),
    "lost": ("?", "yellow"),
}
_SPINNER: Final = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_KEYS: Final = "1 once · 2 always · 3 no, why? · 4 never"
_DIFF_LINES: Final = 8
_MARKDOWN_LIMIT: Final = 20_000
"""Longer texts are shown as they are: they would be laid out again for every picture."""


class FrameShape(NamedTuple):
    """How the person wants it: everything open, and how many lines above the end."""

    width: int
    height: int
    opened: bool = False
    back: int = 0


class Frame:
    """Draws one state. What has ended is laid out once for each width."""

    def __init__(self, state: RunState, console: Console) -> None:
        self._state = state
        self._console = console
        self._kept: dict[tuple[int, int, bool], list[str]] = {}

    def lines(
        self, shape: FrameShape, typed: str, notice: str = "", now: float | None = None
    ) -> list[str]:
        """At most as many lines as the terminal has; the last is the one being typed."""
        now = time.time() if now is None else now
        bottom = self._bottom(shape, typed, notice)
        room = shape.height - len(bottom)
        head = self._print(self._header(now), shape.width)[: min(1, room)]
        room -= len(head)
        tree = self._tree(shape.width, room // 3 if room > 5 else min(1, room), now)
        body = self._body(shape, room - len(tree), now)
        blank = [""] * (room - len(tree) - len(body))
        return [*head, *tree, *body, *blank, *bottom]

    def whole(self, width: int) -> Iterable[str]:
        """Everything that happened, for whoever reads it later."""
        for index, item in enumerate(self._state.calls.items):
            yield from self._item(index, item, FrameShape(width, 0), time.time())
        yield from self._tree(width, 1000, time.time())
        yield from self._print(self._header(time.time()), width)

    def _print(self, what: RenderableType, width: int) -> list[str]:
        self._console.width = width
        with self._console.capture() as captured:
            self._console.print(what, soft_wrap=False)
        return captured.get().rstrip("\n").split("\n")

    def _one_line(self, text: Text, width: int) -> str:
        text.truncate(width, overflow="ellipsis")
        return self._print(text, width)[0]

    def _header(self, now: float) -> Text:
        state, calls = self._state, self._state.calls
        seconds = (calls.ended or now) - calls.began if calls.began else 0.0
        usage = state.usage
        used = (
            f"{usage.prompt_tokens} in · {usage.completion_tokens} out · {max(0.0, seconds):.1f} s"
        )
        line = Text(no_wrap=True, overflow="ellipsis")
        line.append(visible(state.strategy_name), style="bold").append(f"  {used}", style="dim")
        return line.append(f"  {state.run_id}", style="dim")

    def _tree(self, width: int, room: int, now: float) -> list[str]:
        rows = tree_rows(self._state.tree, max(0, room))
        return [self._one_line(self._row(row, now), width) for row in rows]

    def _row(self, row: FlowRow, now: float) -> Text:
        line = Text("  " * row.depth)
        if row.folded:
            return line.append(row.name, style="dim")
        mark, style = (_spin(now), "cyan") if row.state == "running" else _MARKS[row.state]
        line.append(f"{mark} ", style=style)
        line.append(visible(row.name), style="bold" if row.state == "running" else "")
        return line.append(f"  {visible(row.note)}" if row.note else "", style="dim")

    def _body(self, shape: FrameShape, room: int, now: float) -> list[str]:
        if room <= 0:
            return []
        together = self._state.calls.open
        if len(together) < 2 or shape.back or self._state.calls.ended:
            return self._end_of_all(shape, room, now)
        # Side by side in time is one below the other on the screen, each with its latest lines.
        shown = together[: max(1, (room - (len(together) * 2 > room)) // 2)]
        hidden = len(together) - len(shown)
        share, extra = divmod(room - bool(hidden), len(shown))
        lines: list[str] = []
        for number, call in enumerate(shown):
            own = self._call(call, shape, now)
            height = max(1, share + (number < extra))
            lines += [own[0], *(own[1:][-(height - 1) :] if height > 1 else [])]
        if hidden:
            lines.append(self._one_line(Text(f"… {hidden} more at work", style="dim"), shape.width))
        return lines[:room]

    def _end_of_all(self, shape: FrameShape, room: int, now: float) -> list[str]:
        lines: list[str] = []
        items = self._state.calls.items
        for index in range(len(items) - 1, -1, -1):
            lines = [*self._item(index, items[index], shape, now), *lines]
            if len(lines) >= room + shape.back:
                break
        end = max(min(len(lines), room), len(lines) - shape.back)
        return lines[max(0, end - room) : end]

    def _item(
        self, index: int, item: ShownCall | Remark, shape: FrameShape, now: float
    ) -> list[str]:
        if isinstance(item, ShownCall) and item.ended is None:
            return self._call(item, shape, now)
        key = index, shape.width, shape.opened
        if key not in self._kept or any(each is item for each in self._state.calls.open):
            self._kept[key] = (
                self._call(item, shape, now)
                if isinstance(item, ShownCall)
                else self._print(Text(visible(item.text), style="magenta"), shape.width)
            )
        return self._kept[key]

    def _call(self, call: ShownCall, shape: FrameShape, now: float) -> list[str]:
        tokens = call.usage.prompt_tokens + call.usage.completion_tokens
        told = [visible(call.model), f"{tokens} tokens" if tokens else ""]
        told.append(f"{max(0.0, (call.ended or now) - call.began):.1f} s")
        mark = "✗" if call.cut else "✓" if call.ended else _spin(now)
        line = Text(f"{mark} ", style="cyan").append(visible(call.agent), style="bold cyan")
        line.append("  " + " · ".join(each for each in told if each), style="dim")
        lines = [self._one_line(line, shape.width)]
        for part in call.parts:
            live = call.ended is None and part is call.parts[-1]
            lines += self._print(
                Padding(self._part(part, shape, live=live), (0, 0, 0, 2)), shape.width
            )
        return lines

    def _part(
        self, part: ShownThought | Said | Used, shape: FrameShape, *, live: bool
    ) -> RenderableType:
        match part:
            case ShownThought():
                return self._thought(part, shape, live=live)
            case Used():
                return self._used(part, shape)
            case Said(text=text) if len(text) > _MARKDOWN_LIMIT:
                return Text(visible(text[-_MARKDOWN_LIMIT:] if live else text))
            case Said(text=text):
                return Markdown(visible(text), hyperlinks=False)

    def _thought(self, part: ShownThought, shape: FrameShape, *, live: bool) -> RenderableType:
        words = len(part.text.split())
        head = Text(f"▸ thought: {words} word{'s' * (words != 1)}", style="dim italic")
        text = Text(visible(part.text.strip()), style="dim italic")
        if shape.opened:
            return Group(head, text)
        if live:
            return Group(head, *text.wrap(self._console, max(10, shape.width - 2))[-2:])
        return head

    def _used(self, part: Used, shape: FrameShape) -> RenderableType:
        mark, style = (
            ("⚙", "yellow") if part.output is None else ("✓", "green") if part.ok else ("✗", "red")
        )
        line = Text(f"{mark} ", style=style).append(visible(part.name), style="bold")
        size = "" if part.output is None else f" → {part.size}"
        room = shape.width - 2 - line.cell_len - len(size) - 1
        arguments = Text(f" {visible(part.arguments)}", style="dim")
        if not shape.opened:
            arguments.truncate(max(4, room), overflow="ellipsis")
        line.append_text(arguments).append(size, style="dim")
        if part.output is None:
            return line
        diff = part.diff
        if shape.opened and not diff:
            return Group(line, Text(visible(part.output.rstrip()), style="dim"))
        shown = diff if shape.opened else diff[:_DIFF_LINES]
        rest = len(diff) - len(shown)
        more = [Text(f"… {rest} more lines (Tab)", style="dim")] if rest else []
        return Group(line, *(_diff_line(each) for each in shown), *more)

    def _bottom(self, shape: FrameShape, typed: str, notice: str) -> list[str]:
        """What waits, with the answers it takes, and the line being typed: never left out."""
        width, prompts = shape.width, self._state.prompts
        line = Text("› " if prompts else "steer › ", style="bold yellow" if prompts else "magenta")
        line.append(_end_of(visible(typed), max(4, width - line.cell_len - 1)), style="default")
        last = [self._one_line(line, width)]
        if notice:
            last = [*self._print(Text(visible(notice), style="bold yellow"), width)[:2], *last]
        if not prompts:
            return last[-max(1, shape.height) :]
        first = prompts[0]
        if isinstance(first, m.RequestPermission):
            last = [self._one_line(Text(_KEYS, style="yellow"), width), *last]
        others = [Text(visible(question(each)), style="yellow") for each in prompts[1:3]]
        room = max(1, shape.height - len(last))
        asked = self._print(Text(visible(question(first)), style="bold yellow"), width)
        if len(asked) > room:
            rest = f"… {len(asked) - room + 1} more lines: make the window larger"
            asked = [*asked[: room - 1], self._one_line(Text(rest, style="red"), width)]
        lines = [*asked, *last]
        if len(prompts) > 3 and len(lines) + 6 < shape.height:
            more = Text(f"… and {len(prompts) - 3} more wait", style="yellow")
            lines = [self._one_line(more, width), *lines]
        for other in others:
            if len(lines) + 4 < shape.height:
                lines = [self._one_line(other, width), *lines]
        return lines


def _spin(now: float) -> str:
    return _SPINNER[int(now * 10) % len(_SPINNER)]


def _end_of(text: str, room: int) -> str:
    return text if len(text) <= room else f"…{text[-(room - 1) :]}"


def _diff_line(line: str) -> Text:
    style = "green" if line.startswith("+") else "red" if line.startswith("-") else "dim"
    return Text(visible(line), style=style, no_wrap=True, overflow="ellipsis")

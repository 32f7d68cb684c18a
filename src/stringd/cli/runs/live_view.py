"""A run as a live picture in the terminal: flow, streaming text, usage, and a line to type in."""

import asyncio
import time
from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, Group, RenderResult
from rich.live import Live
from rich.padding import Padding
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from stringd.cli.keys import LineEditor
from stringd.cli.runs.plain_view import question, way_on
from stringd.cli.runs.state import Node, RunState
from stringd.cli.streams import visible
from stringd.wire.runs import messages as m

_MARKS = {
    "waiting": ("·", "dim"),
    "done": ("✓", "green"),
    "failed": ("✗", "red"),
    "lost": ("?", "yellow"),
}
_FRAMES_PER_SECOND = 12


class LiveView:
    """Redraws itself while open; `editor` is the line being typed."""

    def __init__(self, state: RunState, editor: LineEditor) -> None:
        self._state = state
        self._editor = editor
        self._spinner = Spinner("dots", style="cyan")
        self._began = time.monotonic()
        self._console = Console()
        self._live = Live(
            self,
            console=self._console,
            # A thread that redraws would do so between our lines, and leave some of its own behind.
            auto_refresh=False,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._live.start()
        self._redraw()

    def _redraw(self) -> None:
        self._live.refresh()
        loop = asyncio.get_running_loop()
        self._next = loop.call_later(1 / _FRAMES_PER_SECOND, self._redraw)

    def see(self, message: m.DaemonMessage) -> None:
        """Finished answers scroll up above the picture; the rest is in the state."""
        match message:
            case m.AgentOutput():
                self._print_answer(message.agent_name, message.text)
            case m.SteerQueued():
                self._console.print(Text(f"↪ {visible(message.text)}", style="magenta"))
            case m.StrategyCompleted() | m.StrategyError():
                self._live.refresh()
            case _:
                pass

    def note(self, text: str) -> None:
        self._console.print(Text(text, style="bold yellow"))

    def close(self) -> None:
        """End the picture and leave the outcome behind."""
        self._next.cancel()
        self._live.stop()
        self._console.print(Group(*self._tree(), self._footer()))
        match self._state.ending:
            case m.StrategyCompleted(result=result):
                self._console.print(Text(f"\n{visible(result)}"))
            case m.StrategyError(error=error):
                line = f"\n{error.code}: {visible(error.message)}"
                self._console.print(Text(line, style="red"))
                self._console.print(Text(visible(way_on(self._state.ending))))
            case None:
                pass

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        tree = list(self._tree())
        yield from tree
        used = len(tree) + 4
        yield from self._speech(options.max_width, max(3, console.height - used))
        yield self._footer()
        yield self._typed()

    def _print_answer(self, who: str, text: str) -> None:
        self._console.print(Text(who, style="bold cyan"))
        self._console.print(Padding(Text(visible(text)), (0, 0, 1, 2)))

    def _tree(self) -> Iterable[Table]:
        yield self._row(self._state.tree, 0, f"  {self._state.run_id}")
        yield from self._rows(self._state.tree.children, 1)

    def _rows(self, nodes: Iterable[Node], depth: int) -> Iterable[Table]:
        for node in nodes:
            yield self._row(node, depth, self._note(node))
            yield from self._rows(node.children, depth + 1)

    def _note(self, node: Node) -> str:
        tokens = node.usage.prompt_tokens + node.usage.completion_tokens
        parts = [node.kind if node.kind != "agent" else ""]
        parts += [f"×{node.times}" if node.times > 1 else ""]
        parts += [f"{tokens} tokens" if tokens else ""]
        return "  " + " ".join(part for part in parts if part)

    def _row(self, node: Node, depth: int, note: str) -> Table:
        row = Table.grid(padding=(0, 1, 0, 0))
        running = node.state == "running"
        mark = None if running else _MARKS[node.state]
        row.add_row(
            Text("  " * depth),
            self._spinner if mark is None else Text(mark[0], style=mark[1]),
            Text(visible(node.name), style="bold" if running else ""),
            Text(visible(note), style="dim"),
        )
        return row

    def _speech(self, width: int, height: int) -> Iterable[Text]:
        state = self._state
        if state.agent is None:
            return
        yield Text(f"{visible(state.agent)}", style="bold cyan")
        text, style = (state.text, "") if state.text else (state.thinking, "dim italic")
        lines = Text(visible(text), style=style).wrap(self._console, max(10, width - 2))
        for line in lines[-height:]:
            yield Text("  ") + line
        if state.tool is not None:
            yield Text(f"  ⚙ {visible(state.tool)}", style="yellow")

    def _footer(self) -> Text:
        usage = self._state.usage
        seconds = time.monotonic() - self._began
        return Text(
            f"{usage.prompt_tokens} in · {usage.completion_tokens} out · {seconds:.1f} s",
            style="dim",
        )

    def _typed(self) -> Text:
        # The one to be answered next is right above the line.
        asked = [question(each) for each in reversed(self._state.prompts)]
        lead = "\n".join(asked) or "steer"
        style = "bold yellow" if asked else "magenta"
        line = Text(f"{visible(lead)} › ", style=style)
        line.append(visible(self._editor.text), style="default")
        return line.append("▏", style="blink")

"""Following a started run in the view that fits the terminal."""

import asyncio
import os
import sys
import threading
import time
from contextlib import ExitStack
from types import TracebackType
from typing import NamedTuple, Self

from stringd.cli.keys import TypedLine
from stringd.cli.runs.common import on_interrupt
from stringd.cli.runs.follow import INTERRUPTED, LEFT, ReadLine, RunFollower
from stringd.cli.runs.plain_view import JsonView, PlainView, RunView
from stringd.cli.runs.state import RunState
from stringd.cli.streams import visible
from stringd.client.runs import RunsClient
from stringd.wire.runs import messages as m
from stringd.wire.runs.types import McpServerStatus


class Reach(NamedTuple):
    """How far to follow: past the endings of earlier segments, or as far as a run is that rests."""

    past: int = 0
    until: int | None = None


class Watching:
    """The view that fits the terminal, for as long as it is entered."""

    def __init__(
        self, state: RunState, prepared: m.RunPrepared, *, json: bool, plain: bool
    ) -> None:
        self._state = state
        self._stack = ExitStack()
        self._left = False
        for server in prepared.mcp_servers:
            _say_if_missing(server)
        self._view, self._read_line, self._interactive = _view(
            state, self._stack, json=json, plain=plain
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._stack:
            self._view.close()
        if self._left:
            run_id = self._state.run_id
            again = f"stringd runs resume {run_id}"
            told = f"Run {run_id} continues in the background. Reattach: {again}"
            print(visible(told), file=sys.stderr)

    def say(self, text: str) -> None:
        """Something about the connection, where the person sees it."""
        if isinstance(self._view, PlainView):
            print(visible(f"stringd: {text}"), file=sys.stderr, flush=True)
        else:
            self._view.note(text)

    async def follow(self, client: RunsClient, reach: Reach) -> int:
        """Follow a run to its end, or until it is left or stopped. Raises `RunsError`."""
        follower = RunFollower(
            client,
            self._state,
            self._view,
            self._read_line,
            interactive=self._interactive,
            past=reach.past,
            until=reach.until,
        )
        following = asyncio.create_task(follower.follow())
        on_interrupt(following)
        try:
            code = await following
        except asyncio.CancelledError:
            if reach.until is not None:
                return INTERRUPTED
            return await follower.stop()
        self._left = code == LEFT
        return code


def _say_if_missing(server: McpServerStatus) -> None:
    """Agents do without a server that is not there; a person should know."""
    if not server.enabled:
        why = "is off; enabledByDefault in its mcp.json switches it on"
    elif server.connected is False:
        why = f"could not be used: {server.error}"
    else:
        return
    print(visible(f"stringd: MCP server {server.id} {why}"), file=sys.stderr)


def _view(
    state: RunState, stack: ExitStack, *, json: bool, plain: bool
) -> tuple[RunView, ReadLine, bool]:
    interactive = sys.stdin.isatty()
    if json:
        return JsonView(), _stdin.read_line, interactive
    if plain or not sys.stdout.isatty() or not interactive or os.environ.get("TERM") == "dumb":
        return PlainView(state), _stdin.read_line, interactive
    try:
        from stringd.cli.keys import Keyboard
        from stringd.cli.runs.live_view import LiveView
    except ImportError:
        return PlainView(state), _stdin.read_line, interactive
    keyboard = stack.enter_context(Keyboard())
    return LiveView(state, keyboard), keyboard.read_line, True


class _Stdin:
    """Lines of standard input, read in a thread that does not keep the program alive.

    A read that nobody waits for any more gives its line to whoever reads next.
    """

    def __init__(self) -> None:
        self._open: asyncio.Future[str] | None = None

    async def read_line(self) -> TypedLine | None:
        """The next line. When it was begun is not known, so it counts from its end."""
        if self._open is None:
            self._open = self._begin()
        text = await asyncio.shield(self._open)
        self._open = None
        return TypedLine(text.rstrip("\n"), time.monotonic()) if text else None

    @staticmethod
    def _begin() -> "asyncio.Future[str]":
        loop = asyncio.get_running_loop()
        line: asyncio.Future[str] = loop.create_future()

        def read() -> None:
            text = sys.stdin.readline()
            loop.call_soon_threadsafe(lambda: None if line.done() else line.set_result(text))

        threading.Thread(target=read, daemon=True).start()
        return line


_stdin = _Stdin()

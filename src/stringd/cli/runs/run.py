"""`stringd run`: run a strategy and watch it."""

import argparse
import asyncio
import os
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from msgspec import UNSET

from stringd.cli.keys import TypedLine
from stringd.cli.runs.common import (
    add_port,
    daemon_port,
    ensure_daemon,
    fail,
    on_interrupt,
    run_async,
)
from stringd.cli.runs.follow import BEGIN, LEFT, ReadLine, RunFollower
from stringd.cli.runs.plain_view import JsonView, PlainView, RunView
from stringd.cli.runs.state import RunState
from stringd.cli.streams import visible
from stringd.client.daemon import UsageError
from stringd.client.runs import RequestFailedError, RunsClient, UnreachableError
from stringd.wire.runs import messages as m
from stringd.wire.runs import requests as r
from stringd.wire.runs.names import new_run_id
from stringd.wire.runs.types import McpServerStatus

_EPILOG = """\
While it runs, a line you type steers the run: the agent at work sees it before its next step, else
the next agent does. When an agent asks, the line is your answer. Ctrl-C stops the run, Ctrl-D
ends the view and lets the run continue.

exit code: 0 completed, 1 failed, 3 stopped by someone else, 4 left, 130 stopped by Ctrl-C
"""


def main(name: str, argv: Sequence[str]) -> int:
    """Run `stringd run`."""
    parser = argparse.ArgumentParser(
        prog=f"stringd {name}",
        description="Run a strategy and watch it.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("strategy", help="a strategy file, or the name of a discovered strategy")
    add_input(parser)
    parser.add_argument("--model", help="provider/model for every agent")
    parser.add_argument("--run-id", help="name the run yourself")
    parser.add_argument("--manifest", help="project manifest to load first")
    add_port(parser)
    add_view_options(parser)
    args = parser.parse_args(argv)
    try:
        port = daemon_port(args)
        path, manifest = find_strategy(args.strategy)
        ensure_daemon(port)
    except UsageError as error:
        return fail(error)
    prepare = r.PrepareRun(
        strategy_path=str(path),
        cwd=str(Path.cwd()),
        run_id=args.run_id or new_run_id(str(path)),
        model_override=args.model or UNSET,
        manifest_path=args.manifest or manifest or UNSET,
    )
    return run_async(_run(port, prepare, input_of(args), args))


def add_input(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--input", "-i", default="", help="what the flow starts from ('-': stdin)")


def input_of(args: argparse.Namespace) -> str:
    """What a person gave the flow to start from."""
    return sys.stdin.read() if args.input == "-" else str(args.input)


def add_view_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="every message as a line of JSON")
    parser.add_argument("--plain", action="store_true", help="lines, even in a terminal")


def find_strategy(name: str) -> tuple[Path, str | None]:
    """The file a person means, and its project's manifest. Raises `UsageError`.

    What a workspace offers and nobody has trusted is asked about once, in a terminal.
    """
    path = Path(name)
    if path.is_file():
        return path.resolve(), None
    if name.startswith("@") and "/strategies/" in name:
        return path, None
    from stringd.cli.runs.strategies import data_directory, unknown_strategy
    from stringd.runs.strategy.discover import discover, find_by_name

    known = discover(Path.cwd(), data_directory())
    found = find_by_name(known.strategies, name)
    untrusted = next((each for each in known.warnings if each.trust), None)
    if found is None and untrusted is not None and untrusted.trust and trusts(untrusted.trust):
        found = find_by_name(discover(Path.cwd(), data_directory()).strategies, name)
    if found is None:
        hint = f"; {untrusted.reason}" if untrusted else ""
        raise UsageError(f"{unknown_strategy(name, known.strategies)}{hint}")
    return found.path.resolve(), str(found.manifest) if found.manifest else None


def trusts(path: str) -> bool:
    """Whether the person at this terminal trusts a path, now that it is needed."""
    from stringd.cli.trust import ask, can_ask
    from stringd.system.trust import TrustError, TrustStore

    try:
        return can_ask() and ask(path, TrustStore())
    except TrustError as error:
        raise UsageError(str(error)) from None


async def _run(port: int, prepare: r.PrepareRun, text: str, args: argparse.Namespace) -> int:
    async with RunsClient(port, person=sys.stdin.isatty()) as client:
        if args.run_id:
            await _check_new(client, args.run_id)
        try:
            prepared = await client.ask(prepare)
        except RequestFailedError as error:
            if error.trust is None or not await asyncio.to_thread(trusts, error.trust):
                raise
            prepared = await client.ask(prepare)
        assert isinstance(prepared, m.RunPrepared)  # the daemon's only answer
        await client.send(r.StartRun(run_id=prepared.run_id, input=text, request_id=BEGIN))
        return await watch(client, prepared, json=args.json, plain=args.plain)


async def _check_new(client: RunsClient, run_id: str) -> None:
    """Raises `UsageError` for the name of an earlier run, which `start_run` could not begin."""
    try:
        await client.ask(r.GetTimeline(run_id=run_id))
    except RequestFailedError:
        return
    raise UsageError(
        f"run {run_id} already exists; use stringd runs resume or stringd runs continue"
    )


async def watch(client: RunsClient, prepared: m.RunPrepared, *, json: bool, plain: bool) -> int:
    """Follow a started run to its end, in the view that fits the terminal."""
    state = RunState(prepared)
    for server in prepared.mcp_servers:
        _say_if_missing(server)
    with ExitStack() as stack:
        view, read_line, interactive = _view(state, stack, json=json, plain=plain)
        session = RunFollower(client, state, view, read_line, interactive=interactive)
        following = asyncio.create_task(session.follow())
        on_interrupt(following)
        try:
            code = await following
        except asyncio.CancelledError:
            return await session.stop()
        except UnreachableError as error:
            raise UnreachableError(
                f"{error}. Go on with: stringd runs resume {state.run_id}"
            ) from error
        finally:
            view.close()
    if code == LEFT:
        again = f"stringd runs resume {state.run_id}"
        print(
            visible(f"Run {state.run_id} continues in the background. Reattach: {again}"),
            file=sys.stderr,
        )
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
        return JsonView(), _read_stdin, interactive
    if plain or not sys.stdout.isatty() or not interactive or os.environ.get("TERM") == "dumb":
        return PlainView(state), _read_stdin, interactive
    try:
        from stringd.cli.keys import Keyboard
        from stringd.cli.runs.live_view import LiveView
    except ImportError:
        return PlainView(state), _read_stdin, interactive
    keyboard = stack.enter_context(Keyboard())
    return LiveView(state, keyboard.editor), keyboard.read_line, True


async def _read_stdin() -> TypedLine | None:
    """One line of standard input, read in a thread that does not keep the program alive.

    When it was begun is not known, so it counts from its end.
    """
    loop = asyncio.get_running_loop()
    line: asyncio.Future[str] = loop.create_future()

    def read() -> None:
        text = sys.stdin.readline()
        loop.call_soon_threadsafe(lambda: None if line.done() else line.set_result(text))

    threading.Thread(target=read, daemon=True).start()
    text = await line
    return TypedLine(text.rstrip("\n"), time.monotonic()) if text else None

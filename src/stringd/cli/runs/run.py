"""`stringd run`: run a strategy and watch it."""

import argparse
import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

from msgspec import UNSET

from stringd.cli.runs.common import (
    add_port,
    daemon_port,
    ensure_daemon,
    fail,
    run_async,
)
from stringd.cli.runs.follow import BEGIN
from stringd.cli.runs.reconnect import watch_through
from stringd.client.daemon import UsageError
from stringd.client.runs import RequestFailedError, RunsClient
from stringd.wire.runs import messages as m
from stringd.wire.runs import requests as r
from stringd.wire.runs.names import new_run_id

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
        return await watch_through(port, client, prepared, json=args.json, plain=args.plain)


async def _check_new(client: RunsClient, run_id: str) -> None:
    """Raises `UsageError` for the name of an earlier run, which `start_run` could not begin."""
    try:
        await client.ask(r.GetTimeline(run_id=run_id))
    except RequestFailedError:
        return
    raise UsageError(
        f"run {run_id} already exists; use stringd runs resume or stringd runs continue"
    )

"""`stringd runs`: list, show, resume, continue, fork, stop, delete and answer runs."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec import UNSET, UnsetType

from stringd.cli.runs.common import add_port, daemon_port, ensure_daemon, fail, run_async
from stringd.cli.runs.decisions import add_commands, answer, decisions
from stringd.cli.runs.follow import BEGIN
from stringd.cli.runs.reconnect import is_running, watch_through
from stringd.cli.runs.run import add_input, add_view_options, input_of
from stringd.cli.runs.show import asked, overview_line, show, state_of
from stringd.cli.runs.watching import Reach
from stringd.cli.streams import visible
from stringd.client.daemon import UsageError
from stringd.client.runs import RequestFailedError, RunsClient
from stringd.wire.runs import messages as m
from stringd.wire.runs import requests as r
from stringd.wire.runs.types import RunOverview

_STATES = ("running", "completed", "error", "cancelled", "interrupted")


def main(name: str, argv: Sequence[str]) -> int:
    """Run `stringd runs`."""
    parser = argparse.ArgumentParser(
        prog=f"stringd {name}",
        description="List, show, resume, continue, fork, stop, delete or answer runs.",
    )
    commands = parser.add_subparsers(dest="command", metavar="command")
    listing = commands.add_parser("list", help="every run on disk, newest first (the default)")
    listing.add_argument("--here", action="store_true", help="only runs of this directory")
    listing.add_argument("--cwd", metavar="PATH", help="only runs of this directory")
    listing.add_argument("--state", choices=_STATES, help="only runs in this state")
    listing.add_argument("--strategy", metavar="NAME", help="only runs of this strategy")
    listing.add_argument("--limit", type=int, metavar="N", help="at most so many, the newest")
    shown = commands.add_parser("show", help="what was said in a run")
    shown.add_argument(
        "--tools", action="store_true", help="also tools, permissions, answers, tokens and times"
    )
    resume = commands.add_parser("resume", help="continue after the last completed step")
    watch = commands.add_parser(
        "watch",
        help="everything a run did, and what it does while it works",
        description="Show a run from its beginning and follow it while it works, as whoever began "
        "it sees it. Nothing is begun; a line typed answers or steers a run that works.",
    )
    more = commands.add_parser("continue", help="say more in a finished run; its agents remember")
    add_input(more)
    fork = commands.add_parser(
        "fork",
        help="a new run from the completed steps of another",
        description="Begin a new run with the steps another has completed, up to and with the one "
        "named, and run the rest. Nothing of those steps is done again, and the other run is not "
        "changed.",
    )
    fork.add_argument(
        "--at", required=True, metavar="STEP", help="a completed step: its name, or its path"
    )
    fork.add_argument("--model", help="provider/model for every agent from there on")
    fork.add_argument("--run-id", dest="new_run_id", help="name the new run yourself")
    stop = commands.add_parser("stop", help="stop a run")
    delete = commands.add_parser("delete", help="forget a run, its history included")
    answer, decisions = add_commands(commands)
    for each in (shown, resume, watch, more, fork, stop, delete, answer, decisions):
        each.add_argument("run_id", help="the run, as `stringd runs` lists it")
    for each in (resume, watch, more, fork):
        add_view_options(each)
    more.add_argument("text", nargs="*", help="what to say; the same as --input")
    answer.add_argument("text", nargs="+", help="the answer; - reads it from standard input")
    for each in (listing, shown, stop, delete, answer, decisions):
        each.add_argument("--json", action="store_true", help="print JSON")
    for each in (listing, shown, resume, watch, more, fork, stop, delete, answer, decisions):
        add_port(each)
    arguments = list(argv)
    if not arguments or (arguments[0].startswith("-") and arguments[0] not in ("-h", "--help")):
        arguments.insert(0, "list")
    args = parser.parse_args(arguments)
    try:
        port = daemon_port(args)
        ensure_daemon(port)
    except UsageError as error:
        return fail(error)
    return run_async(_WORK[args.command](port, args))


async def _list(port: int, args: argparse.Namespace) -> int:
    async with RunsClient(port) as client:
        answer = await client.ask(r.ListRuns(cwd=_place(args)))
        every = answer.runs if isinstance(answer, m.RunList) else []
        runs = [run for run in every if _is_wanted(run, args)][
            : None if args.limit is None else max(0, args.limit)
        ]
        if args.json:
            print(msgspec.json.encode(runs).decode())
            return 0
        if every and not runs:
            print("no run is like that; stringd runs lists all of them")
        if not every:
            print("no runs yet; try: stringd run <strategy>")
        width = max((len(run.run_id) for run in runs), default=0)
        for run in runs:
            print(visible(overview_line(run, width)))
            for waits in await _waits(client, run):
                print(visible(f"  ? {waits}; answer with: stringd runs resume {run.run_id}"))
    return 0


def _place(args: argparse.Namespace) -> str | UnsetType:
    return str(Path(args.cwd or "").absolute()) if args.here or args.cwd else UNSET


def _is_wanted(run: RunOverview, args: argparse.Namespace) -> bool:
    if args.state and state_of(run) != args.state:
        return False
    return not args.strategy or args.strategy in (run.strategy_name, Path(run.strategy_path).stem)


async def _waits(client: RunsClient, run: RunOverview) -> list[str]:
    """What a live run wants of somebody."""
    if run.status != "running":
        return []
    told = await client.ask(r.GetTimeline(run_id=run.run_id))
    return [asked(each) for each in told.waiting] if isinstance(told, m.RunTimeline) else []


async def _resume(port: int, args: argparse.Namespace) -> int:
    resumed = r.ContinueRun(run_id=args.run_id, input="", resume=True, request_id=BEGIN)
    return await _go_on(port, args, resumed)


async def _continue(port: int, args: argparse.Namespace) -> int:
    if args.text and args.input:
        raise UsageError("give the text once, after the run or as --input")
    args.input = " ".join(args.text) or args.input
    more = r.ContinueRun(run_id=args.run_id, input=input_of(args), request_id=BEGIN)
    return await _go_on(port, args, more)


async def _fork(port: int, args: argparse.Namespace) -> int:
    async with RunsClient(port) as client:
        forked = await client.ask(
            r.ForkRun(run_id=args.run_id, at=args.at, new_run_id=args.new_run_id or UNSET)
        )
    assert isinstance(forked, m.RunForked)  # the daemon's only answer
    if not args.json:
        origin = forked.forked_from
        told = f"forked {forked.run_id} from {origin.run_id} after step {origin.step}"
        print(visible(f"stringd: {told}"), file=sys.stderr)
    args.run_id = forked.run_id
    return await _resume(port, args)


async def _go_on(port: int, args: argparse.Namespace, request: r.ContinueRun) -> int:
    """Begin the next segment of a run, or follow the one under way, and watch."""
    async with RunsClient(port, person=sys.stdin.isatty()) as client:
        prepared = await client.ask(
            r.PrepareRun(run_id=args.run_id, model_override=getattr(args, "model", None) or UNSET)
        )
        if not isinstance(prepared, m.RunPrepared):
            return fail(f"run {args.run_id} cannot be prepared")
        running = await is_running(client, args.run_id)
        if running and not request.resume:
            return fail(f"run {args.run_id} is running; see it with stringd runs resume")
        reach = None
        if running:
            await client.hear_from(args.run_id, 1)
            reach = Reach(past=prepared.last_seq or 0)
        else:
            await client.send(request)
        try:
            return await watch_through(
                port, client, prepared, json=args.json, plain=args.plain, reach=reach
            )
        except RequestFailedError:
            # What was prepared for nothing must not keep others from it.
            await client.send(r.StopRun(run_id=args.run_id))
            raise


async def _watch(port: int, args: argparse.Namespace) -> int:
    """Show a run from its beginning, and follow it while it works; begins nothing."""
    async with RunsClient(port, person=sys.stdin.isatty()) as client:
        told = await client.ask(r.GetTimeline(run_id=args.run_id))
        prepared = await client.ask(r.PrepareRun(run_id=args.run_id))
        if not isinstance(prepared, m.RunPrepared) or not isinstance(told, m.RunTimeline):
            return fail(f"run {args.run_id} cannot be watched; see stringd runs show")
        running = await is_running(client, args.run_id)
        so_far = prepared.last_seq or 0
        await client.hear_from(args.run_id, 1)
        try:
            return await watch_through(
                port,
                client,
                prepared,
                json=args.json,
                plain=args.plain,
                reach=Reach(past=so_far) if running else Reach(until=so_far),
            )
        finally:
            if not running:
                # What was prepared to be looked at must not keep others from it.
                await client.send(r.StopRun(run_id=args.run_id))


async def _stop(port: int, args: argparse.Namespace) -> int:
    async with RunsClient(port) as client:
        try:
            await client.send(r.Subscribe(run_id=args.run_id))
            listed = await client.ask(r.ListStrategies())
        except RequestFailedError as error:
            return fail(error)
        runs = listed.runs if isinstance(listed, m.StrategyList) else []
        if not any(x.run_id == args.run_id and x.status in ("pending", "running") for x in runs):
            return fail(f"run {args.run_id} is not running")
        await client.send(r.StopRun(run_id=args.run_id))
        async for message in client.messages():
            if isinstance(message, m.StrategyError | m.StrategyCompleted):
                break
    stopped = msgspec.json.encode({"stopped": args.run_id}).decode()
    print(stopped if args.json else visible(f"stopped {args.run_id}"))
    return 0


async def _delete(port: int, args: argparse.Namespace) -> int:
    async with RunsClient(port) as client:
        await client.ask(r.DeleteRun(run_id=args.run_id))
    deleted = msgspec.json.encode({"deleted": args.run_id}).decode()
    print(deleted if args.json else visible(f"deleted {args.run_id}"))
    return 0


_WORK = {
    "list": _list,
    "show": show,
    "resume": _resume,
    "continue": _continue,
    "watch": _watch,
    "fork": _fork,
    "stop": _stop,
    "delete": _delete,
    "answer": answer,
    "decisions": decisions,
}

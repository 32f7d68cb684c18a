"""What commands about runs share: reaching the daemon, and saying why not."""

import argparse
import asyncio
import signal
import sys
from collections.abc import Coroutine
from typing import Any

from msgspec import UNSET

from stringd.cli.streams import visible
from stringd.client.daemon import (
    UsageError,
    healthy,
    last_words,
    parse_port,
    port_from_environment,
    start,
)
from stringd.client.http import TransportError
from stringd.client.runs import RequestFailedError, RunsClient, RunsError
from stringd.wire.runs import messages as m
from stringd.wire.runs import requests as r
from stringd.wire.runs.catalog import ProviderInfo


def add_port(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--port", help="port of the daemon (STRINGD_PORT, else 3100)")


def daemon_port(args: argparse.Namespace) -> int:
    """The daemon's port. Raises `UsageError`."""
    return parse_port("--port", args.port) if args.port else port_from_environment()


def ensure_daemon(port: int) -> None:
    """Start a daemon unless one answers. Raises `UsageError` when that does not help."""
    try:
        if healthy(port):
            return
        if not start(port):
            raise UsageError(
                f"no daemon answers on port {port}, and starting one failed{last_words()}"
            )
    except TransportError as error:
        raise UsageError(str(error)) from error
    print(f"stringd: started the daemon on port {port}", file=sys.stderr)


def fail(reason: object) -> int:
    print(visible(f"stringd: {reason}"), file=sys.stderr)
    return 1


def run_async(work: Coroutine[Any, Any, int]) -> int:
    """Run a command to its exit code; what went wrong becomes one line."""
    try:
        with asyncio.Runner() as runner:
            return runner.run(work)
    except (RunsError, UsageError) as error:
        way_on = "; stringd runs lists those there are" if _is_missing_run(error) else ""
        return fail(f"{error}{way_on}")


def _is_missing_run(error: Exception) -> bool:
    return isinstance(error, RequestFailedError) and str(error).startswith("Run not found:")


def ask_daemon(args: argparse.Namespace, request: r.ClientMessage) -> m.DaemonMessage:
    """One request, answered; the daemon is started when none runs. Raises `UsageError`."""
    port = daemon_port(args)
    ensure_daemon(port)

    async def ask() -> m.DaemonMessage:
        async with RunsClient(port, person=sys.stdin.isatty()) as client:
            return await client.ask(request)

    try:
        return asyncio.run(ask())
    except RunsError as error:
        raise UsageError(str(error)) from error


def provider_infos(
    args: argparse.Namespace, *, live: bool = False, only: str | None = None
) -> list[ProviderInfo]:
    """The providers the daemon knows. Raises `UsageError`."""
    answer = ask_daemon(args, r.ListProviders(live=live, provider_id=only or UNSET))
    found = answer.providers if isinstance(answer, m.ProviderList) else []
    # A daemon of an earlier version lists all of them whatever it is asked.
    return [each for each in found if only is None or each.id == only]


def named_provider(port: int, provider: str) -> ProviderInfo | None:
    """One provider, asked for its models by a daemon that runs. Raises `UsageError`."""

    async def ask() -> m.DaemonMessage:
        async with RunsClient(port) as client:
            return await client.ask(r.ListProviders(live=True, provider_id=provider))

    try:
        answer = asyncio.run(ask())
    except RunsError as error:
        raise UsageError(str(error)) from error
    found = answer.providers if isinstance(answer, m.ProviderList) else []
    return next((each for each in found if each.id == provider), None)


def on_interrupt(task: "asyncio.Task[Any]") -> None:
    """Let Ctrl-C cancel this task once; a second one ends the program."""
    loop = asyncio.get_running_loop()

    def cancel() -> None:
        loop.remove_signal_handler(signal.SIGINT)
        task.cancel()

    loop.add_signal_handler(signal.SIGINT, cancel)

"""The command line of `stringd top`, and what its keys do."""

import argparse
import asyncio
import json
import shutil
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from stringd.cli.page import address, show
from stringd.cli.runs.common import add_port, daemon_port, fail
from stringd.cli.streams import visible
from stringd.cli.top.rows import TopRow, fitted, rows, summary
from stringd.cli.top.screen import Screen
from stringd.client.daemon import UsageError
from stringd.client.exec import execute
from stringd.client.feed import overview
from stringd.client.http import DaemonConnection, TransportError
from stringd.client.runs import RunsClient, RunsError
from stringd.wire.runs import requests as r

KILL_SECONDS: Final = 30.0


def main(name: str, argv: Sequence[str]) -> int:
    """Show the daemon live, or once."""
    parser = argparse.ArgumentParser(
        prog=f"stringd {name}",
        description="Show what goes on in the daemon, live: what waits for you, runs, shells and "
        "topics. Keys answer what waits, stop a run, kill a shell's command or open the page. "
        "Without a terminal it prints everything once.",
    )
    parser.add_argument("--once", action="store_true", help="print it once, as text")
    parser.add_argument("--json", action="store_true", help="print it once, as a JSON object")
    add_port(parser)
    args = parser.parse_args(argv)
    try:
        port = daemon_port(args)
        if args.json:
            print(json.dumps(overview(port)))
        elif args.once or not (sys.stdin.isatty() and sys.stdout.isatty()):
            _print(port)
        else:
            keys = _Keys(port)
            Screen(port, stop=keys.stop, kill=keys.kill, open_page=keys.open_page).run()
    except (UsageError, TransportError) as error:
        return fail(error)
    return 0


def _print(port: int) -> None:
    seen = overview(port)
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else 10_000
    print(visible(summary(seen, port)))
    for row in rows(seen, datetime.now(UTC)):
        text = fitted(row, width) if width < 10_000 else _whole(row)
        print(visible(text))


def _whole(row: TopRow) -> str:
    if row.kind == "head":
        return row.text
    return f"  {row.state:<12}  {row.text}  {row.age}".rstrip()


class _Keys:
    """What is done with the chosen row; each answers with a sentence."""

    def __init__(self, port: int) -> None:
        self._port = port

    def stop(self, row: TopRow) -> str:
        if row.kind not in ("run", "prompt"):
            return "Only a run can be stopped."
        try:
            asyncio.run(self._stop(row.about[0]))
        except RunsError as error:
            return visible(str(error))
        return f"Told run {row.about[0][:8]} to stop."

    async def _stop(self, run_id: str) -> None:
        async with RunsClient(self._port, person=True) as client:
            await client.send(r.StopRun(run_id=run_id))
            await client.ask(r.Ping())

    def kill(self, row: TopRow) -> str:
        if row.kind != "topic" or not row.about[1].startswith("bash:"):
            return "Only a shell's command can be killed."
        user, topic = row.about
        try:
            with DaemonConnection(self._port, timeout=KILL_SECONDS) as connection:
                reply = execute(connection, user, topic, "//kill")
        except TransportError as error:
            return visible(str(error))
        first = reply.content.strip().partition("\n")[0]
        return visible(f"{topic}: {first or 'killed'}")

    def open_page(self, row: TopRow) -> str:
        words = {"topic": ("topic", *row.about), "run": ("run", *row.about)}.get(row.kind, ())
        opened = show(self._port, *words)
        return f"{'Opened' if opened else 'Open in a browser:'} {address(self._port, *words)}"

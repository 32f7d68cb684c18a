"""Watching a run through the end of its daemon: wait until one answers again, then go on."""

import asyncio
import sys
from typing import Final

from stringd.cli.runs.common import on_interrupt
from stringd.cli.runs.follow import BEGIN, FAILED
from stringd.cli.runs.watching import watch
from stringd.cli.streams import visible
from stringd.client.runs import RunsClient, UnreachableError
from stringd.wire.runs import messages as m
from stringd.wire.runs import requests as r

WAIT_SECONDS: Final = 60.0
_PAUSE_SECONDS: Final = 0.5


async def watch_through(
    port: int, client: RunsClient, prepared: m.RunPrepared, *, json: bool, plain: bool
) -> int:
    """Like `watch`, also when the daemon ends meanwhile. Raises `RunsError`."""
    try:
        return await watch(client, prepared, json=json, plain=plain)
    except UnreachableError as lost:
        run_id = prepared.run_id
        _say(f"{lost}\nstringd: waiting {WAIT_SECONDS:g} s for the daemon to come back")
    task = asyncio.current_task()
    assert task is not None
    on_interrupt(task)
    try:
        async with await _back(port, run_id) as again:
            return await _go_on(port, again, run_id, json=json, plain=plain)
    except asyncio.CancelledError:
        _say(_way_on(run_id))
        return FAILED


async def _back(port: int, run_id: str) -> RunsClient:
    """A client of the daemon that answers again; not connected yet. Raises `UnreachableError`."""
    clock = asyncio.get_running_loop().time
    until = clock() + WAIT_SECONDS
    while True:
        try:
            async with RunsClient(port):
                return RunsClient(port, person=sys.stdin.isatty())
        except UnreachableError as error:
            if clock() > until:
                raise UnreachableError(f"{error}. {_way_on(run_id)}") from error
        await asyncio.sleep(_PAUSE_SECONDS)


async def _go_on(port: int, client: RunsClient, run_id: str, *, json: bool, plain: bool) -> int:
    prepared = await client.ask(r.PrepareRun(run_id=run_id))
    assert isinstance(prepared, m.RunPrepared)  # the daemon's only answer
    if not await is_running(client, run_id):
        _say("the daemon is back; the run continues after its last completed step")
        await client.send(r.ContinueRun(run_id=run_id, input="", resume=True, request_id=BEGIN))
    return await watch_through(port, client, prepared, json=json, plain=plain)


async def is_running(client: RunsClient, run_id: str) -> bool:
    listed = await client.ask(r.ListStrategies())
    runs = listed.runs if isinstance(listed, m.StrategyList) else []
    return any(run.run_id == run_id and run.status == "running" for run in runs)


def _way_on(run_id: str) -> str:
    return f"Go on with: stringd runs resume {run_id}"


def _say(text: str) -> None:
    print(visible(f"stringd: {text}"), file=sys.stderr, flush=True)

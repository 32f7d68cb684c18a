"""Watching a run through the end of its daemon: wait until one answers again, then go on."""

import asyncio
import sys
from typing import Final

from stringd.cli.runs.common import on_interrupt
from stringd.cli.runs.follow import BEGIN, FAILED
from stringd.cli.runs.state import RunState
from stringd.cli.runs.watching import Reach, Watching
from stringd.client.runs import RunsClient, UnreachableError
from stringd.wire.runs import messages as m
from stringd.wire.runs import requests as r
from stringd.wire.runs.types import ErrorInfo

WAIT_SECONDS: Final = 60.0
_PAUSE_SECONDS: Final = 0.5


async def watch_through(
    port: int,
    client: RunsClient,
    prepared: m.RunPrepared,
    *,
    json: bool,
    plain: bool,
    reach: Reach | None = None,
) -> int:
    """Show a run until it ends, also when the daemon ends meanwhile. Raises `RunsError`.

    With `reach` it is heard from its first broadcast on, else from now on.
    """
    state = RunState(prepared, whole=reach is not None)
    reach = reach or Reach(past=state.seq)
    with Watching(state, prepared, json=json, plain=plain) as watching:
        try:
            return await watching.follow(client, reach)
        except UnreachableError as lost:
            told = str(lost)
        return await _through(port, watching, state, told)


async def _through(port: int, watching: Watching, state: RunState, told: str) -> int:
    task = asyncio.current_task()
    assert task is not None
    while True:
        state.lose()
        watching.say(f"{told}; waiting {WAIT_SECONDS:g} s for the daemon to come back")
        on_interrupt(task)
        try:
            client = await _back(port, state.run_id)
        except asyncio.CancelledError:
            watching.say(_way_on(state.run_id))
            return FAILED
        async with client:
            try:
                reach = await _go_on(client, state, watching)
                return await watching.follow(client, reach)
            except UnreachableError as lost:
                told = str(lost)


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


async def _go_on(client: RunsClient, state: RunState, watching: Watching) -> Reach:
    """Hear what was missed, and resume what the daemon's end interrupted."""
    run_id = state.run_id
    prepared = await client.ask(r.PrepareRun(run_id=run_id))
    assert isinstance(prepared, m.RunPrepared)  # the daemon's only answer
    running = await is_running(client, run_id)
    interrupted = not running and await _is_interrupted(client, run_id)
    await client.hear_from(run_id, state.seq + 1)
    so_far = prepared.last_seq or 0
    if interrupted:
        watching.say("the daemon is back; the run continues after its last completed step")
        await client.send(r.ContinueRun(run_id=run_id, input="", resume=True, request_id=BEGIN))
    elif not running:
        return Reach(until=so_far)
    else:
        watching.say("the daemon is back")
    return Reach(past=so_far)


async def is_running(client: RunsClient, run_id: str) -> bool:
    listed = await client.ask(r.ListStrategies())
    runs = listed.runs if isinstance(listed, m.StrategyList) else []
    return any(run.run_id == run_id and run.status == "running" for run in runs)


async def _is_interrupted(client: RunsClient, run_id: str) -> bool:
    told = await client.ask(r.GetTimeline(run_id=run_id))
    error = told.error if isinstance(told, m.RunTimeline) else None
    return isinstance(error, ErrorInfo) and error.code == "INTERRUPTED"


def _way_on(run_id: str) -> str:
    return f"Go on with: stringd runs resume {run_id}"

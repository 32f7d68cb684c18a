"""Who hears a run, from when on."""

import logging

from msgspec import UNSET

from stringd.runs.engine.live_runs import LiveRuns
from stringd.runs.engine.run import Run
from stringd.runs.handlers.client import ConnectedClient
from stringd.runs.handlers.dispatch import background
from stringd.wire.runs.messages import Error

log = logging.getLogger(__name__)


def follow(run: Run, client: ConnectedClient) -> None:
    """Hear everything the run says from now on, or from the end of its replay on."""
    if not client.closing and run.id not in client.replays:
        run.subscribers[client] = None
        client.runs.add(run.id)


def join(run: Run, client: ConnectedClient) -> None:
    """Follow, and show a newcomer the prompts that already wait."""
    if client in run.subscribers or run.id in client.replays:
        return
    follow(run, client)
    for waiting in run.prompts:
        client.push(waiting.frame)


def leave(run_id: str, run: Run | None, client: ConnectedClient) -> None:
    """Hear no more of a run, nor of what it said before."""
    client.runs.discard(run_id)
    replay = client.replays.pop(run_id, None)
    if replay is not None:
        replay.cancel()
    if run is not None:
        run.subscribers.pop(client, None)


def replay(known: LiveRuns, run_id: str, client: ConnectedClient, from_seq: int) -> None:
    """Send what was, at the client's pace, then follow; a gap is told where it is."""
    leave(run_id, known.get(run_id), client)
    task = background(client, _replay(known, run_id, client, from_seq))
    client.replays[run_id] = task


async def _replay(known: LiveRuns, run_id: str, client: ConnectedClient, from_seq: int) -> None:
    sent = max(from_seq, 1) - 1
    # The run may be prepared again while its client reads.
    while (run := known.get(run_id)) is not None and sent < run.seq and not client.closing:
        before = sent
        for number, frame in run.history(sent + 1):
            if number > sent + 1:
                client.reply(_gone(run_id, sent + 1, number))
            client.push(frame)
            sent = number
            await client.room()
        if sent == before:
            log.error("run %s lost broadcasts before %d", run_id, run.seq)
            break
    del client.replays[run_id]
    if run is not None:
        follow(run, client)
        for waiting in run.prompts:
            if waiting.prompt.seq is not UNSET and waiting.prompt.seq < from_seq:
                client.push(waiting.frame)


def _gone(run_id: str, wanted: int, first: int) -> Error:
    return Error(
        code="EVENTS_GONE",
        message=f"Events {wanted} to {first - 1} of run {run_id} are no longer kept. "
        "What was said is in the conversation that prepare_run answers with.",
        run_id=run_id,
        next_seq=first,
    )

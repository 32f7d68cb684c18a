"""Who hears a run, from when on."""

import logging

from msgspec import UNSET

from stringd.runs.audience import Client
from stringd.runs.run import Run
from stringd.wire.runs.messages import Error

log = logging.getLogger(__name__)


def follow(run: Run, client: Client) -> None:
    """Hear everything the run says from now on."""
    if not client.closing:
        run.subscribers[client] = None
        client.runs.add(run.id)


def join(run: Run, client: Client) -> None:
    """Follow, and show a newcomer the prompts that already wait."""
    if client in run.subscribers:
        return
    follow(run, client)
    for waiting in run.prompts:
        client.push(waiting.frame)


def leave(run: Run, client: Client) -> None:
    run.subscribers.pop(client, None)
    client.runs.discard(run.id)


async def replay(run: Run, client: Client, from_seq: int) -> None:
    """Send what was, at the client's pace, then follow; a gap is told where it is."""
    sent = max(from_seq, 1) - 1
    while sent < run.seq and not client.closing:
        before = sent
        for number, frame in run.history(sent + 1):
            if number > sent + 1:
                client.reply(_gone(run.id, sent + 1, number))
            client.push(frame)
            sent = number
            if client.full:
                await client.room()
        if sent == before:
            log.error("run %s lost broadcasts before %d", run.id, run.seq)
            break
    asked = [w for w in run.prompts if w.prompt.seq is not UNSET and w.prompt.seq < from_seq]
    follow(run, client)
    for waiting in asked:
        client.push(waiting.frame)


def _gone(run_id: str, wanted: int, first: int) -> Error:
    return Error(
        code="EVENTS_GONE",
        message=f"Events {wanted} to {first - 1} of run {run_id} are no longer kept. "
        "What was said is in the conversation that prepare_run answers with.",
        run_id=run_id,
        next_seq=first,
    )

"""Processes that are spoken to in lines: nothing of them stays behind."""

import asyncio
import os
from contextlib import suppress
from pathlib import Path

import pytest

from stringd.net.line_process import start_line_process

pytestmark = pytest.mark.anyio

# The first leaves the group and ignores what it is asked; the second is nobody's child any more.
LEAVES = """
setsid sh -c 'trap "" HUP TERM; echo $$; exec sleep 600' &
(setsid sh -c 'echo $$; exec sleep 600' &)
exec cat
"""


def our_pipes() -> set[str]:
    pipes: set[str] = set()
    for descriptor in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):
            pipes.add(str(descriptor.readlink()))
    return {each for each in pipes if each.startswith("pipe:")}


async def test_what_leaves_the_group_ends_with_the_process() -> None:
    environment = {"PATH": os.environ["PATH"]}
    process = await start_line_process(["/bin/sh", "-c", LEAVES], environment, "/")
    said = process.lines()
    left = [int(await anext(said)), int(await anext(said))]
    await process.end()
    process.close()
    for pid in left:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


@pytest.mark.parametrize("steps", range(1, 8))
async def test_a_start_that_is_given_up_at_any_step_leaves_no_process_and_no_pipe(
    steps: int,
) -> None:
    command = ["/bin/sh", "-c", "trap '' TERM; exec sleep 600"]
    before = our_pipes()
    starting = asyncio.create_task(
        start_line_process(command, {"PATH": os.environ["PATH"]}, "/"),
    )
    for _ in range(steps):
        await asyncio.sleep(0)
    if starting.cancel():
        with pytest.raises(asyncio.CancelledError):
            await starting
        # The loop closes its ends of the pipes on its next turn.
        await asyncio.sleep(0)
    else:
        process = await starting
        await process.end()
        process.close()
        await asyncio.sleep(0)
    assert our_pipes() == before

"""Processes that are spoken to in lines: nothing of them stays behind."""

import os

import pytest

from stringd.net.line_process import start_line_process

pytestmark = pytest.mark.anyio

# The first leaves the group and ignores what it is asked; the second is nobody's child any more.
LEAVES = """
setsid sh -c 'trap "" HUP TERM; echo $$; exec sleep 600' &
(setsid sh -c 'echo $$; exec sleep 600' &)
exec cat
"""


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

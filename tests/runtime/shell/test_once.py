"""One command in a fresh shell."""

import asyncio
import os
from pathlib import Path

import pytest

from stringd.runtime.shell.errors import UnusableInputError
from stringd.runtime.shell.once import OneShot
from stringd.runtime.shell.reply import ShellEnding, ShellReply
from tests.runtime.shell.support import alive

pytestmark = pytest.mark.anyio


def once(tmp_path: Path, command: str) -> OneShot:
    return OneShot(command, home=str(tmp_path), cwd=str(tmp_path), base=os.environ)


async def run(tmp_path: Path, command: str, limit: float = 30.0) -> ShellReply:
    return await once(tmp_path, command).reply(limit)


async def test_output_and_errors_come_in_the_order_they_were_written(tmp_path: Path) -> None:
    reply = await run(tmp_path, "echo one; echo two >&2; echo three; exit 3")
    assert reply == ShellReply(ShellEnding.COMPLETED, 3, str(tmp_path), "one\ntwo\nthree")


async def test_a_home_that_nobody_made_yet_is_made(tmp_path: Path) -> None:
    home = tmp_path / "people" / "ann"
    reply = await run(home, "pwd")
    assert (reply.cwd, reply.output) == (str(home), str(home))
    assert home.stat().st_mode & 0o777 == 0o700


async def test_the_directory_told_is_the_one_it_ran_in(tmp_path: Path) -> None:
    running = OneShot("pwd", home=str(tmp_path), cwd=str(tmp_path / "gone"), base=os.environ)
    reply = await running.reply(30.0)
    assert (reply.cwd, reply.output) == ("/", "/")


async def test_a_directory_keeps_the_name_it_was_given(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    named = tmp_path / "named"
    named.symlink_to(tmp_path / "real")
    reply = await run(named, "pwd")
    assert (reply.cwd, reply.output) == (str(named), str(named))


async def test_standard_input_is_empty(tmp_path: Path) -> None:
    assert (await run(tmp_path, "cat; echo end")).output == "end"


async def test_there_is_no_terminal(tmp_path: Path) -> None:
    reply = await run(tmp_path, "tty; echo x > /dev/tty")
    assert "not a tty" in reply.output
    assert reply.exit_code != 0


async def test_a_time_limit_kills_and_returns_what_was_printed(tmp_path: Path) -> None:
    reply = await run(tmp_path, "echo partial; sleep 1000", limit=0.3)
    assert (reply.ending, reply.exit_code) == (ShellEnding.TIMED_OUT, 124)
    assert reply.output == "partial"
    assert "timed out" in reply.notes[0]


async def test_a_signal_counts_as_status_one(tmp_path: Path) -> None:
    reply = await run(tmp_path, "kill -9 $$")
    assert reply.exit_code == 1
    assert reply.notes == ("killed by SIGKILL",)


async def test_nothing_it_started_outlives_it(tmp_path: Path) -> None:
    reply = await run(
        tmp_path,
        "sleep 1000 & echo $!; setsid sleep 1001 >/dev/null 2>&1 & echo $!; wait -n -p x &",
    )
    pids = [int(line) for line in reply.output.split() if line.isdigit()]
    assert len(pids) == 2
    assert not any(map(alive, pids))


async def test_more_output_than_a_pipe_holds_arrives_whole(tmp_path: Path) -> None:
    reply = await run(tmp_path, "head -c 3000000 /dev/zero | tr '\\0' x; echo; echo last")
    assert reply.truncated
    assert reply.output.endswith("last")


async def test_closing_it_early_ends_it(tmp_path: Path) -> None:
    running = once(tmp_path, "sleep 1000")
    answer = asyncio.create_task(running.reply(60))
    await running.close()
    assert (await answer).exit_code == 1


async def test_a_nul_character_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnusableInputError):
        once(tmp_path, "echo \0")

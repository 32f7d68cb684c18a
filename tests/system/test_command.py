"""One program to its end: its streams, its limits, and that nothing of it stays."""

import asyncio
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from stringd.system.command import Command, CommandEnding, ask_program, output_of
from tests.runtime.shell.support import alive
from tests.support.daemon import WAIT_SECONDS

pytestmark = pytest.mark.anyio
ENVIRONMENT = {"PATH": os.environ["PATH"]}
both_ways = pytest.mark.parametrize("keeps_detached", [False, True])


class Started:
    """A bash line under way, with what it printed."""

    def __init__(
        self, text: str, directory: Path | int, *, split: bool = False, keeps_detached: bool = False
    ) -> None:
        self.out, self.err = bytearray(), bytearray()
        self.command = Command(
            ("/bin/bash", "-c", text),
            environment=ENVIRONMENT,
            directory=directory if isinstance(directory, int) else str(directory),
            out=self.out.extend,
            err=self.err.extend if split else None,
            keeps_detached=keeps_detached,
        )

    @property
    def lines(self) -> list[str]:
        return self.out.decode().split()


@both_ways
async def test_streams_are_merged_in_order_and_kept_apart_on_request(
    tmp_path: Path, keeps_detached: bool
) -> None:
    text = "echo a; echo b >&2; echo c; exit 3"
    merged = Started(text, tmp_path, keeps_detached=keeps_detached)
    assert await merged.command.wait(WAIT_SECONDS) == (CommandEnding.COMPLETED, 3, None)
    assert merged.lines == ["a", "b", "c"]
    apart = Started(text, tmp_path, split=True, keeps_detached=keeps_detached)
    await apart.command.wait(WAIT_SECONDS)
    assert (bytes(apart.out), bytes(apart.err)) == (b"a\nc\n", b"b\n")


@both_ways
async def test_a_program_past_its_time_is_ended_with_its_children(
    tmp_path: Path, keeps_detached: bool
) -> None:
    text = "sleep 1000 & echo $! $$; trap '' TERM HUP; wait; sleep 1000"
    started = Started(text, tmp_path, keeps_detached=keeps_detached)
    async with asyncio.timeout(WAIT_SECONDS):
        while len(started.lines) < 2:  # noqa: ASYNC110 - another process prints them
            await asyncio.sleep(0.01)
    ended = await started.command.wait(0.1)
    assert ended.ending is CommandEnding.TIMED_OUT
    assert not any(alive(int(pid)) for pid in started.lines)


async def test_what_left_the_group_ends_too_unless_it_may_stay(tmp_path: Path) -> None:
    text = "setsid sleep 1000 >/dev/null 2>&1 & echo $!"
    ended = Started(text, tmp_path)
    await ended.command.wait(WAIT_SECONDS)
    assert not alive(int(ended.lines[0]))
    left = "mkfifo up; setsid sh -c 'echo >up; exec sleep 1000' >/dev/null 2>&1 & echo $!; read <up"
    kept = Started(left, tmp_path, keeps_detached=True)
    await kept.command.wait(WAIT_SECONDS)
    pid = int(kept.lines[0])
    assert alive(pid)
    os.kill(pid, signal.SIGKILL)


@both_ways
async def test_a_background_job_does_not_hold_the_answer(
    tmp_path: Path, keeps_detached: bool
) -> None:
    started = Started("sleep 1000 & echo $!", tmp_path, keeps_detached=keeps_detached)
    assert (await started.command.wait(WAIT_SECONDS)).ending is CommandEnding.COMPLETED
    async with asyncio.timeout(WAIT_SECONDS):
        # Killed it is already; the kernel may still be at it.
        while alive(int(started.lines[0])):  # noqa: ASYNC110
            await asyncio.sleep(0.01)


@both_ways
async def test_closing_ends_it_for_whoever_waits(tmp_path: Path, keeps_detached: bool) -> None:
    started = Started("echo $$; sleep 1000", tmp_path, keeps_detached=keeps_detached)
    waiting = asyncio.create_task(started.command.wait(WAIT_SECONDS))
    await asyncio.sleep(0)
    await asyncio.gather(started.command.close(), started.command.close())
    assert (await waiting).ending is CommandEnding.CLOSED
    assert started.command.ended


@both_ways
async def test_whoever_is_cancelled_leaves_nothing_running(
    tmp_path: Path, keeps_detached: bool
) -> None:
    text = "sleep 1000 & echo $! $$ > pids.tmp; mv pids.tmp pids; wait"
    started = Started(text, tmp_path, keeps_detached=keeps_detached)
    waiting = asyncio.create_task(started.command.wait(WAIT_SECONDS))
    # A task that is cancelled before its first step never runs at all.
    await asyncio.sleep(0)
    async with asyncio.timeout(WAIT_SECONDS):
        while not (tmp_path / "pids").exists():  # noqa: ASYNC110 - another process makes it
            await asyncio.sleep(0.01)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    # A killed process is gone when the kernel gets to it, not when it was told.
    async with asyncio.timeout(WAIT_SECONDS):
        while any(alive(int(pid)) for pid in (tmp_path / "pids").read_text().split()):  # noqa: ASYNC110
            await asyncio.sleep(0.01)


@both_ways
async def test_the_signal_that_ended_it_is_told(tmp_path: Path, keeps_detached: bool) -> None:
    started = Started("kill -9 $$", tmp_path, keeps_detached=keeps_detached)
    ended = await started.command.wait(WAIT_SECONDS)
    assert ended == (CommandEnding.COMPLETED, 128 + 9, signal.SIGKILL)


@both_ways
async def test_it_works_in_an_open_directory_wherever_that_is_by_now(
    tmp_path: Path, keeps_detached: bool
) -> None:
    (tmp_path / "was").mkdir()
    folder = os.open(tmp_path / "was", os.O_RDONLY)
    (tmp_path / "was").rename(tmp_path / "is")
    try:
        started = Started("pwd -P", folder, keeps_detached=keeps_detached)
    finally:
        os.close(folder)
    await started.command.wait(WAIT_SECONDS)
    assert started.lines == [str((tmp_path / "is").resolve())]


@both_ways
async def test_there_is_no_terminal_and_no_input(tmp_path: Path, keeps_detached: bool) -> None:
    started = Started("tty; cat; echo end", tmp_path, keeps_detached=keeps_detached)
    await started.command.wait(WAIT_SECONDS)
    assert started.out.endswith(b"not a tty\nend\n")


@both_ways
async def test_more_output_than_a_pipe_holds_arrives_whole(
    tmp_path: Path, keeps_detached: bool
) -> None:
    text = "head -c 3000000 /dev/zero"
    started = Started(text, tmp_path, keeps_detached=keeps_detached)
    await started.command.wait(WAIT_SECONDS)
    assert len(started.out) == 3_000_000


@both_ways
async def test_no_descriptor_stays_open(tmp_path: Path, keeps_detached: bool) -> None:
    def count() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    before = count()
    await Started("true", tmp_path, keeps_detached=keeps_detached).command.wait(WAIT_SECONDS)
    with pytest.raises(OSError, match="No such file"):
        Started("true", tmp_path / "gone", keeps_detached=True)
    assert count() == before


async def test_the_caller_may_wrap_the_program(tmp_path: Path) -> None:
    def wrapped(argv: Sequence[str]) -> Sequence[str]:
        return ("/usr/bin/env", "WRAPPED=yes", *argv)

    out = bytearray()
    argv = wrapped(("/bin/bash", "-c", 'echo "$WRAPPED"'))
    command = Command(argv, environment=ENVIRONMENT, directory=str(tmp_path), out=out.extend)
    await command.wait(WAIT_SECONDS)
    assert out == b"yes\n"


async def test_a_helper_program_answers_and_is_killed_with_whoever_asked(tmp_path: Path) -> None:
    echo = (sys.executable, "-c", "import sys; print(sys.stdin.read()[::-1], end='')")
    assert await ask_program(echo, b"abc", ENVIRONMENT) == b"cba"
    pid = tmp_path / "pid"
    text = f"echo $$ > {pid}.tmp; mv {pid}.tmp {pid}; sleep 1000"
    asking = asyncio.create_task(ask_program(("/bin/bash", "-c", text), b"", ENVIRONMENT))
    async with asyncio.timeout(WAIT_SECONDS):
        while not pid.exists():  # noqa: ASYNC110 - another process makes it
            await asyncio.sleep(0.01)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert not alive(int(pid.read_text()))


def test_a_short_program_prints_or_takes_too_long() -> None:
    assert output_of(("/bin/sh", "-c", "echo hi; echo no >&2"), ENVIRONMENT, 20) == "hi\n"
    with pytest.raises(TimeoutError):
        output_of(("/bin/sh", "-c", "sleep 1000"), ENVIRONMENT, 0.1)

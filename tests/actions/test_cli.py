"""Commands: how they end, and that nothing of them stays."""

import asyncio
import os
from pathlib import Path

import pytest

from stringd.actions.cli import RunningCommand, command_environment
from stringd.actions.errors import ActionError
from stringd.system.command import CommandEnding
from tests.runtime.shell.support import alive
from tests.support.daemon import WAIT_SECONDS

pytestmark = pytest.mark.anyio
ENVIRONMENT = {"PATH": os.environ["PATH"]}


async def test_streams_are_merged_in_order_and_kept_apart_on_request(tmp_path: Path) -> None:
    text = "echo a; echo b >&2; echo c"
    merged = await RunningCommand(text, ENVIRONMENT, tmp_path, split=False).output(WAIT_SECONDS)
    assert (merged.ending, merged.exit_code, merged.text) == (CommandEnding.COMPLETED, 0, "a\nb\nc")
    apart = await RunningCommand(text, ENVIRONMENT, tmp_path, split=True).output(WAIT_SECONDS)
    assert (apart.stdout, apart.stderr) == ("a\nc", "b")


async def test_an_overrun_command_is_ended_with_its_children(tmp_path: Path) -> None:
    text = f"sleep 1000 & echo $! > {tmp_path}/pid; trap '' TERM; echo started; wait; sleep 1000"
    output = await RunningCommand(text, ENVIRONMENT, tmp_path, split=False).output(0.5)
    assert (output.ending, output.exit_code, output.text) == (CommandEnding.TIMED_OUT, 1, "started")
    assert not alive(int((tmp_path / "pid").read_text()))


async def test_closing_ends_it_for_whoever_waits(tmp_path: Path) -> None:
    running = RunningCommand("echo started; sleep 1000", ENVIRONMENT, tmp_path, split=False)
    waiting = asyncio.create_task(running.output(WAIT_SECONDS))
    await asyncio.sleep(0)
    await running.close()
    output = await waiting
    assert (output.ending, output.exit_code) == (CommandEnding.CLOSED, 1)


async def test_a_background_child_does_not_hold_the_answer(tmp_path: Path) -> None:
    running = RunningCommand("sleep 1000 & echo ok", ENVIRONMENT, tmp_path, split=False)
    assert (await running.output(WAIT_SECONDS)).text == "ok"


async def test_a_directory_that_is_gone_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(ActionError, match="Cannot run the command: No such file or directory"):
        RunningCommand("true", ENVIRONMENT, tmp_path / "gone", split=False)


async def test_only_a_few_names_are_inherited() -> None:
    base = {"PATH": "/bin", "LANG": "C", "HOME": "/root", "OPENAI_API_KEY": "x", "BASH_ENV": "y"}
    found = command_environment(base, {"CITY": "Oslo", "LD_PRELOAD": "evil.so"}, {"V": "1"})
    assert found == {
        "PATH": "/bin",
        "LANG": "C",
        "HOME": "/root",
        "TERM": "dumb",
        "CITY": "Oslo",
        "V": "1",
    }

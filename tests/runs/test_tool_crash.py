"""The daemon is killed while tools run; a resumed run repeats none of them."""

import asyncio
import random
from collections import Counter
from pathlib import Path

import pytest
import yaml
from websockets.asyncio.client import connect

from tests.requirements import proves
from tests.runs.support import Json, Watcher, scripted, sequential, strategy
from tests.runs.test_crash import timeline
from tests.support.daemon import Daemon

pytestmark = pytest.mark.anyio

CALLS = 12


def source() -> Json:
    """An agent that leaves one mark per call: before, while and after the next one runs."""
    replies = [
        {
            "tools": [
                {
                    "name": "run_command",
                    "args": {"command": f"echo {number} >> marks; sleep 0.02"},
                }
            ]
        }
        for number in range(CALLS)
    ]
    agent = {**scripted(*replies, "all done"), "tools": ["run_command"]}
    return strategy(sequential("a"), a=agent)


def marks(folder: Path) -> Counter[int]:
    path = folder / "marks"
    return Counter(map(int, path.read_text("ascii").split())) if path.exists() else Counter()


async def begin(watcher: Watcher, folder: Path, path: Path, *, known: bool) -> None:
    if not known:
        fields = {"runId": "r", "strategyPath": str(path), "cwd": str(folder)}
        assert (await watcher.ask("prepare_run", **fields))["type"] == "run_prepared"
        await watcher.send("start_run", runId="r", input="go")
        return
    assert (await watcher.ask("prepare_run", runId="r"))["type"] == "run_prepared"
    await watcher.send("continue_run", runId="r", input="", resume=True)


def done_calls(daemon: Daemon) -> set[int]:
    """The calls whose end is on record."""
    keys = [e["key"] for e in timeline(daemon, "r") if e["type"] == "tool_finished"]
    assert len(keys) == len(set(keys))
    return {int(key.partition("#")[2].partition(".")[0]) for key in keys}


async def life(daemon: Daemon, folder: Path, path: Path, dice: random.Random) -> bool:
    """Start or resume, and kill after some messages. True when the run came to its end."""
    daemon.start()
    known = bool(timeline(daemon, "r"))
    async with connect(f"ws://127.0.0.1:{daemon.port}/ws", max_queue=None, proxy=None) as socket:
        watcher = Watcher(socket)
        await begin(watcher, folder, path, known=known)
        for _ in range(dice.randint(2, 9)):
            if (await watcher.receive())["type"] == "strategy_completed":
                daemon.kill()
                return True
        await asyncio.sleep(dice.random() * 0.02)
        before = done_calls(daemon)
        daemon.kill()
    assert before <= done_calls(daemon)
    return False


async def crash(tmp_path: Path, kills: int, seed: int) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    path = tmp_path / "s.yaml"
    path.write_text(yaml.safe_dump(source()), "utf-8")
    daemon, dice = Daemon(tmp_path), random.Random(seed)
    for _ in range(kills):
        if await life(daemon, folder, path, dice):
            break
        assert not [mark for mark, times in marks(folder).items() if times > 1]
    else:
        with daemon:
            url = f"ws://127.0.0.1:{daemon.port}/ws"
            async with connect(url, max_queue=None, proxy=None) as socket:
                watcher = Watcher(socket)
                await begin(watcher, folder, path, known=True)
                assert (await watcher.ended())["result"] == "all done"
    found = marks(folder)
    assert set(found.values()) == {1}
    assert done_calls(daemon) == set(range(CALLS))


@proves("RUN-34")
async def test_four_kills_during_tool_calls_repeat_none(tmp_path: Path) -> None:
    await crash(tmp_path, kills=4, seed=3)


@pytest.mark.soak
@proves("RUN-34")
@pytest.mark.parametrize("seed", range(6))
async def test_thirty_kills_during_tool_calls_repeat_none(tmp_path: Path, seed: int) -> None:
    await crash(tmp_path, kills=5, seed=100 + seed)

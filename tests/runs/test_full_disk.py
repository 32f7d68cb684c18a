"""A run on a full disk stops, says why, and can be resumed; it never completes unrecorded."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import yaml
from websockets.asyncio.client import connect

from tests.runs.support import Watcher, scripted, sequential, strategy
from tests.support.daemon import Daemon
from tests.support.small_disk import SmallDisk, small_disk

pytestmark = pytest.mark.anyio

LONG = "x" * 8192
"""More than the last page of a timeline can take."""
ASKING = strategy(
    sequential("human", "last"),
    human={"type": "user"},
    last=scripted("got {message}"),
)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    daemon = Daemon(tmp_path)
    with small_disk(daemon) as disk, daemon:
        yield disk


@pytest.fixture
async def watcher(disk: SmallDisk) -> AsyncIterator[Watcher]:
    url = f"ws://127.0.0.1:{disk.daemon.port}/ws"
    async with connect(url, max_queue=None, proxy=None) as socket:
        yield Watcher(socket)


@pytest.fixture
def path(disk: SmallDisk) -> str:
    path = disk.daemon.directory / "s.yaml"
    path.write_text(yaml.safe_dump(ASKING), "utf-8")
    return str(path)


async def test_a_run_that_cannot_be_recorded_stops_and_is_resumed_with_room(
    disk: SmallDisk, watcher: Watcher, path: str
) -> None:
    await watcher.ask("prepare_run", runId="r", strategyPath=path)
    await watcher.send("start_run", runId="r", input="")
    await watcher.until("request_input")
    disk.fill()
    await watcher.send("user_input", runId="r", agentName="human", text=LONG, requestId="answer")
    told = await watcher.until("strategy_error", "strategy_completed")
    assert told[-1]["type"] == "strategy_error"
    assert told[-1]["error"]["code"] == "EXECUTION_ERROR"
    assert "the disk is full" in told[-1]["error"]["message"]
    assert "stringd runs resume r" in told[-1]["error"]["message"]
    refused = [each for each in told if each["type"] == "error"]
    assert [each["code"] for each in refused] == ["INTERNAL_ERROR"]
    listed = (await watcher.ask("list_runs"))["runs"]
    assert [(run["runId"], run["status"]) for run in listed] == [("r", "error")]
    disk.clear()
    assert (await watcher.ask("prepare_run", runId="r"))["type"] == "run_prepared"
    await watcher.send("continue_run", runId="r", input="", resume=True)
    await watcher.until("request_input")
    await watcher.send("user_input", runId="r", agentName="human", text="room")
    assert (await watcher.ended())["result"] == "got room"


async def test_a_run_whose_start_cannot_be_recorded_is_not_started(
    disk: SmallDisk, watcher: Watcher, path: str
) -> None:
    await watcher.ask("prepare_run", runId="r", strategyPath=path)
    disk.fill()
    refused = await watcher.ask("start_run", runId="r", input=LONG)
    assert (refused["type"], refused["code"]) == ("error", "START_FAILED")
    assert "the disk is full" in refused["message"]
    assert not (disk.root / "runs" / "r.jsonl").exists()
    disk.clear()
    await watcher.send("start_run", runId="r", input="go")
    assert (await watcher.ended())["result"] == "got go"


async def test_a_run_that_a_full_disk_stopped_is_known_after_a_restart(
    disk: SmallDisk, watcher: Watcher, path: str
) -> None:
    await watcher.ask("prepare_run", runId="r", strategyPath=path)
    await watcher.send("start_run", runId="r", input="")
    await watcher.until("request_input")
    disk.fill()
    await watcher.send("user_input", runId="r", agentName="human", text=LONG)
    await watcher.until("strategy_error")
    disk.clear()
    disk.daemon.kill()
    disk.daemon.start()
    url = f"ws://127.0.0.1:{disk.daemon.port}/ws"
    async with connect(url, proxy=None) as socket:
        listed = (await Watcher(socket).ask("list_runs"))["runs"]
    assert [(run["runId"], run["status"]) for run in listed] == [("r", "error")]

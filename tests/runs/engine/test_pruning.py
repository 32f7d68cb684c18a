"""Events of old runs are forgotten, and a client that asks for them is told."""

import os
from pathlib import Path

import pytest

from stringd.runs.engine.live_runs import LiveRuns
from stringd.runs.engine.pruning import Pruning
from stringd.runs.engine.run import Run
from stringd.runs.record.file_store import FileRunStore
from tests.requirements import proves
from tests.runs.support import RunsServer, Watcher, kinds, scripted, sequential, serving, strategy

pytestmark = pytest.mark.anyio

ONE = strategy(sequential("a"), a=scripted("x"))


def events(directory: Path, run_id: str) -> list[str]:
    path = directory / "data" / "runs" / "events" / f"{run_id}.jsonl"
    return path.read_text("utf-8").splitlines()


async def three_runs(server: RunsServer, watcher: Watcher) -> None:
    path = server.strategy(ONE)
    for number in (1, 2, 3):
        await watcher.run(path, "go", f"r{number}")
        file = server.directory / "data" / "runs" / "events" / f"r{number}.jsonl"
        os.utime(file, (number, number))


@proves("RUN-37")
async def test_a_restarted_daemon_forgets_old_events_and_goes_on_counting(tmp_path: Path) -> None:
    async with serving(tmp_path) as server:
        await three_runs(server, await server.watcher())
        whole = len(events(tmp_path, "r1"))
    store = FileRunStore(tmp_path / "data" / "runs")
    await Pruning(store, LiveRuns(), keep=2).prune()
    store.close()
    assert [len(events(tmp_path, f"r{number}")) for number in (1, 2, 3)] == [1, whole, whole]
    async with serving(tmp_path) as server:
        watcher = await server.watcher()
        prepared = await watcher.ask("prepare_run", runId="r1")
        assert [record["text"] for record in prepared["conversation"]["records"]] == ["x"]
        await watcher.send("continue_run", runId="r1", input="again")
        assert (await watcher.until("strategy_started"))[-1]["seq"] == whole + 1
        await watcher.ended()
        await watcher.send("subscribe", runId="r1", fromSeq=2)
        gap = await watcher.receive()
        assert (gap["code"], gap["runId"], gap["nextSeq"]) == ("EVENTS_GONE", "r1", whole)
        assert "Events 2 to" in gap["message"]
        replayed = [await watcher.receive() for _ in range(whole + 1)]
        assert [message["seq"] for message in replayed] == list(range(whole, 2 * whole + 1))
        assert kinds(replayed)[:2] == ["strategy_completed", "strategy_started"]


async def test_a_run_that_is_live_keeps_its_events(tmp_path: Path) -> None:
    async with serving(tmp_path) as server:
        await three_runs(server, await server.watcher())
        whole = len(events(tmp_path, "r1"))
    store, known = FileRunStore(tmp_path / "data" / "runs"), LiveRuns()
    known.add(Run("r1", "Test", store, seq=whole))
    await Pruning(store, known, keep=1).prune()
    store.close()
    assert [len(events(tmp_path, f"r{number}")) for number in (1, 2, 3)] == [whole, 1, whole]

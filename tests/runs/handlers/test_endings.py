"""A run that ended is known to have ended, even if the daemon died before it could say so."""

import json
import signal
from pathlib import Path

import pytest
from websockets.exceptions import ConnectionClosed

from tests.runs.support import TERMINAL, Json, scripted, sequential, strategy, watching
from tests.runs.test_tool_crash import Doomed
from tests.support.daemon import Daemon

pytestmark = pytest.mark.anyio

SOURCES: dict[str, Json] = {
    "completed": strategy(
        {"name": "Main", "type": "broadcast", "steps": [{"agent": "a"}, {"agent": "b"}]},
        a=scripted("one"),
        b=scripted("two"),
    ),
    "error": strategy(sequential("a"), a=scripted({"error": "out of order"})),
}


async def dies_at_its_end(tmp_path: Path, source: Json) -> None:
    path = tmp_path / "s.json"
    path.write_text(json.dumps(source), "utf-8")
    daemon = Doomed(tmp_path, DOOM="run_completed:1:after")
    daemon.start()
    async with watching(daemon.port) as watcher:
        await watcher.ask("prepare_run", runId="r", strategyPath=str(path))
        await watcher.send("start_run", runId="r", input="go")
        with pytest.raises(ConnectionClosed):
            await watcher.ended()
    assert daemon.stop() == -signal.SIGKILL


@pytest.mark.parametrize("status", SOURCES)
async def test_an_ending_nobody_heard_is_told_to_whoever_comes_back(
    tmp_path: Path, status: str
) -> None:
    await dies_at_its_end(tmp_path, SOURCES[status])
    with Daemon(tmp_path) as daemon:
        async with watching(daemon.port) as watcher:
            (run,) = (await watcher.ask("list_runs"))["runs"]
            assert run["status"] == status
            found = await watcher.ask("get_timeline", runId="r")
            assert found.get("result") == ("one\n\ntwo" if status == "completed" else None)
            assert (await watcher.ask("prepare_run", runId="r"))["type"] == "run_prepared"
            assert not [m for m in watcher.seen if m["type"] in TERMINAL]
            await watcher.send("subscribe", runId="r", fromSeq=0)
            ending = await watcher.ended()
            if status == "completed":
                assert ending["result"] == "one\n\ntwo"
                assert ending["usage"]["completionTokens"] == 2
            else:
                assert "out of order" in ending["error"]["message"]
            numbers = [m["seq"] for m in watcher.seen if "seq" in m]
            assert numbers == list(range(1, len(numbers) + 1))


async def test_an_ending_is_told_once(tmp_path: Path) -> None:
    await dies_at_its_end(tmp_path, SOURCES["completed"])
    for _ in range(2):
        with Daemon(tmp_path) as daemon:
            async with watching(daemon.port) as watcher:
                await watcher.ask("prepare_run", runId="r")
                await watcher.send("subscribe", runId="r", fromSeq=0)
                await watcher.ended()
                assert await watcher.quiet() == []
                await watcher.send("continue_run", runId="r", input="more")
                assert (await watcher.ended())["result"] == "one\n\ntwo"

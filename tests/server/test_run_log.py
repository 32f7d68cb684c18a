"""`GET /runs/<id>/events.jsonl` of the real daemon."""

import json
from pathlib import Path

import pytest
import yaml
from websockets.asyncio.client import connect

from tests.runs.support import Watcher, scripted, sequential, strategy
from tests.support.daemon import Daemon
from tests.support.http import request

pytestmark = pytest.mark.anyio


async def test_a_run_is_read_whole_while_known_and_after_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_text(yaml.safe_dump(strategy(sequential("a"), a=scripted("done"))), "utf-8")
    with Daemon(tmp_path) as daemon:
        async with connect(f"ws://127.0.0.1:{daemon.port}/ws", proxy=None) as socket:
            heard = await Watcher(socket).run(path, run_id="told")
        first = request(daemon.port, "GET", "/runs/told/events.jsonl")
        daemon.stop()
        daemon.start()
        again = request(daemon.port, "GET", "/runs/told/events.jsonl")
    told = [json.loads(line) for line in first.body.splitlines()]
    assert [each["seq"] for each in told] == list(range(1, len(told) + 1))
    assert told[-1] == heard[-1]
    assert again.body == first.body


@pytest.mark.parametrize("name", ["nobody", "..%2F..%2Fetc", "%00", ".", "a%2Fb"])
async def test_what_is_not_a_run_is_not_found(daemon: Daemon, name: str) -> None:
    assert request(daemon.port, "GET", f"/runs/{name}/events.jsonl").status == 404

"""Two daemons on one data directory: what one of them runs, the other leaves alone."""

import json
from pathlib import Path

import pytest
import yaml

from tests.requirements import proves
from tests.runs.support import Json, scripted, sequential, strategy, watching
from tests.support.daemon import Daemon

pytestmark = pytest.mark.anyio

ASKING = strategy(sequential("u", "a"), u={"type": "user"}, a=scripted("got {message}"))


def endings(daemon: Daemon) -> list[Json]:
    path = daemon.data_dir / "runs" / "r.jsonl"
    events = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    return [event for event in events if event["type"] == "run_completed"]


@proves("RUN-39")
async def test_a_run_is_neither_ended_nor_doubled_by_a_second_daemon(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_text(yaml.safe_dump(ASKING), "utf-8")
    with Daemon(tmp_path) as first, Daemon(tmp_path) as second:
        async with watching(first.port) as owner, watching(second.port) as other:
            await owner.ask("prepare_run", runId="r", strategyPath=str(path))
            await owner.send("start_run", runId="r")
            await owner.until("request_input")
            second.stop()
            second.start()
            assert endings(first) == []
        async with watching(first.port) as owner, watching(second.port) as other:
            assert (await other.ask("list_runs"))["runs"][0]["status"] == "running"
            assert (await other.ask("prepare_run", runId="r"))["type"] == "run_prepared"
            refused = await other.ask("continue_run", runId="r", input="", resume=True)
            assert refused["code"] == "CONTINUE_FAILED"
            assert refused["message"] == "Run is running in another daemon: r"
            await other.send("stop_run", runId="r")
            await other.ended()
            assert (await other.ask("delete_run", runId="r"))["code"] == "RUN_ACTIVE"
            await owner.send("subscribe", runId="r")
            await owner.until("request_input")
            await owner.send("user_input", runId="r", agentName="u", text="this")
            assert (await owner.ended())["result"] == "got this"
            assert [event["status"] for event in endings(first)] == ["completed"]
            assert (await other.ask("delete_run", runId="r"))["type"] == "run_deleted"


@proves("RUN-39")
async def test_what_a_killed_daemon_ran_is_taken_over(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_text(yaml.safe_dump(ASKING), "utf-8")
    first = Daemon(tmp_path)
    with first, Daemon(tmp_path) as second:
        async with watching(first.port) as owner, watching(second.port) as other:
            await owner.ask("prepare_run", runId="r", strategyPath=str(path))
            await owner.send("start_run", runId="r")
            await owner.until("request_input")
            first.kill()
            await other.ask("prepare_run", runId="r")
            await other.send("continue_run", runId="r", input="", resume=True)
            await other.until("request_input")
            await other.send("user_input", runId="r", agentName="u", text="now")
            assert (await other.ended())["result"] == "got now"

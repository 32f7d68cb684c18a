"""Runs on disk, and strategies that could become one."""

from pathlib import Path

import pytest

from tests.requirements import proves
from tests.runs.support import RunsServer, Watcher, scripted, sequential, strategy

pytestmark = pytest.mark.anyio

ONE = strategy(sequential("a"), a=scripted("x"))


def kept(server: RunsServer) -> list[str]:
    folder = server.directory / "data" / "runs"
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


@proves("RUN-38")
async def test_a_deleted_run_leaves_nothing_and_its_id_is_free(
    server: RunsServer, watcher: Watcher
) -> None:
    path = server.strategy(ONE)
    await watcher.run(path, "go", "r")
    assert kept(server) == ["r.config.json", "r.jsonl", "r.jsonl"]
    assert (await watcher.ask("delete_run", runId="r"))["type"] == "run_deleted"
    assert kept(server) == []
    assert (await watcher.ask("list_strategies"))["runs"] == []
    assert (await watcher.ask("list_runs"))["runs"] == []
    assert (await watcher.ask("prepare_run", runId="r"))["message"] == "Run not found: r"
    again = await watcher.run(path, "go", "r")
    assert again[0]["seq"] == 1


@pytest.mark.parametrize("run_id", ["nope", "../data/runs/r", ".."])
async def test_an_unknown_run_cannot_be_deleted(watcher: Watcher, run_id: str) -> None:
    answer = await watcher.ask("delete_run", runId=run_id)
    assert (answer["code"], answer["message"]) == ("RUN_NOT_FOUND", f"Run not found: {run_id}")


async def test_a_live_run_is_not_deleted(server: RunsServer, watcher: Watcher) -> None:
    await watcher.ask("prepare_run", runId="r", strategyPath=str(server.strategy(ONE)))
    assert (await watcher.ask("delete_run", runId="r"))["code"] == "RUN_ACTIVE"
    await watcher.send("start_run", runId="r")
    assert (await watcher.ended())["result"] == "x"


async def test_the_id_of_a_run_that_never_started_is_freed(
    server: RunsServer, watcher: Watcher
) -> None:
    path = str(server.strategy(ONE))
    await watcher.ask("prepare_run", runId="r", strategyPath=path)
    await watcher.send("stop_run", runId="r")
    assert (await watcher.ask("prepare_run", runId="r", strategyPath=path))["type"] == "error"
    assert (await watcher.ask("delete_run", runId="r"))["type"] == "run_deleted"
    prepared = await watcher.ask("prepare_run", runId="r", strategyPath=path)
    assert prepared["type"] == "run_prepared"


@proves("RUN-38")
async def test_strategies_are_discovered_over_the_wire(
    server: RunsServer, watcher: Watcher, tmp_path: Path
) -> None:
    folder = tmp_path / "project" / ".stringd" / "strategies"
    folder.mkdir(parents=True)
    (folder / "bad.yaml").write_text("name: [", "utf-8")
    path = server.strategy({**ONE, "description": "one step"}, str(folder / "one.yaml"))
    server.trust(tmp_path / "project")
    found = await watcher.ask("discover_strategies", cwd=str(tmp_path / "project"))
    assert found["strategies"][0] == {
        "name": "Test",
        "label": "Test",
        "description": "one step",
        "path": str(path),
        "origin": "cwd",
    }
    assert {each["origin"] for each in found["strategies"][1:]} == {"bundled"}
    [warning] = found["warnings"]
    assert warning["path"].endswith("bad.yaml")
    assert warning["reason"].startswith("Parse error: ")
    elsewhere = await watcher.ask("discover_strategies")
    assert {each["origin"] for each in elsewhere["strategies"]} == {"bundled"}

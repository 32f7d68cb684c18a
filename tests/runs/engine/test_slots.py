"""Runs beyond the limit wait their turn, and say where they stand."""

import asyncio
from pathlib import Path

import pytest

from stringd.runs.engine.slots import RunSlots
from tests.runs.support import RunsServer, Watcher, scripted, sequential, serving, strategy

pytestmark = pytest.mark.anyio


async def start(server: RunsServer, watcher: Watcher, *run_ids: str) -> None:
    source = strategy(sequential("u", "a"), u={"type": "user"}, a=scripted("end"))
    path = str(server.strategy(source))
    for run_id in run_ids:
        await watcher.ask("prepare_run", runId=run_id, strategyPath=path)
    for run_id in run_ids:
        await watcher.send("start_run", runId=run_id)


async def queued(watcher: Watcher) -> dict[str, int | None]:
    listed = await watcher.ask("list_strategies")
    return {run["runId"]: run.get("queuePosition") for run in listed["runs"]}


async def answer(watcher: Watcher, run_id: str) -> None:
    await watcher.send("user_input", runId=run_id, agentName="u", text="x")
    await watcher.until("strategy_completed")


async def test_runs_beyond_the_limit_wait_in_the_order_they_were_started(tmp_path: Path) -> None:
    async with serving(tmp_path, max_running=1) as server:
        watcher = await server.watcher()
        await start(server, watcher, "one", "two", "three")
        await watcher.until("request_input")
        assert await queued(watcher) == {"one": None, "two": 1, "three": 2}
        assert server.timeline("three")[0]["type"] == "run_started"
        for run_id in ("one", "two"):
            await answer(watcher, run_id)
            await watcher.until("request_input")
        assert await queued(watcher) == {"one": None, "two": None, "three": None}
        await answer(watcher, "three")


async def test_a_run_that_waits_can_be_stopped_and_leaves_the_queue(tmp_path: Path) -> None:
    async with serving(tmp_path, max_running=1) as server:
        watcher = await server.watcher()
        await start(server, watcher, "one", "two", "three")
        await watcher.until("request_input")
        await watcher.send("stop_run", runId="two")
        assert (await watcher.until("strategy_error"))[-1]["runId"] == "two"
        assert await queued(watcher) == {"one": None, "two": None, "three": 1}
        await answer(watcher, "one")
        assert (await watcher.until("request_input"))[-1]["runId"] == "three"
        assert [e["type"] for e in server.timeline("two")] == ["run_started", "run_completed"]


async def test_a_daemon_that_stops_ends_the_runs_that_wait_too(tmp_path: Path) -> None:
    names = ("one", "two", "three")
    async with serving(tmp_path, max_running=1) as server:
        watcher = await server.watcher()
        await start(server, watcher, *names)
        await watcher.until("request_input")
    assert {server.timeline(name)[-1].get("status") for name in names} == {"cancelled"}


async def test_a_slot_given_to_a_run_that_is_stopped_goes_to_the_next() -> None:
    slots = RunSlots(1)

    async def work(name: str) -> str:
        async with slots.hold(name):
            return name

    async with slots.hold("a"):
        second, third = (asyncio.create_task(work(name)) for name in ("b", "c"))
        await asyncio.sleep(0)
        assert list(slots.positions()) == ["b", "c"]
    assert list(slots.positions()) == ["c"]
    second.cancel()
    assert await third == "c"
    assert slots.positions() == {}

"""Preparations that overlap: the latest one counts."""

import threading
from typing import Any

import pytest

from stringd.runs.engine.loading import prepare
from stringd.runs.handlers import prepare as handler
from tests.runs.support import (
    RunsServer,
    Watcher,
    scripted,
    sequential,
    strategy,
    wait_until,
)
from tests.support.daemon import WAIT_SECONDS

pytestmark = pytest.mark.anyio


async def test_a_stopped_preparation_takes_nothing_from_the_one_after_it(
    server: RunsServer, watcher: Watcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await watcher.run(server.strategy(strategy(sequential("a"), a=scripted("x"))), "go")
    begun, go_on = threading.Event(), threading.Event()

    def slow(*args: Any, **options: Any) -> Any:
        monkeypatch.setattr(handler, "prepare", prepare)
        begun.set()
        go_on.wait(WAIT_SECONDS)
        return prepare(*args, **options)

    monkeypatch.setattr(handler, "prepare", slow)
    await watcher.send("prepare_run", runId="r1", requestId="late")
    await wait_until(begun.is_set)
    await watcher.send("stop_run", runId="r1")
    stopped = await watcher.ended()
    assert (await watcher.ask("prepare_run", runId="r1"))["type"] == "run_prepared"
    go_on.set()
    while (late := await watcher.receive()).get("requestId") != "late":
        pass
    assert (late["code"], late["message"]) == ("PREPARE_FAILED", "Run cancelled by client")
    await watcher.send("continue_run", runId="r1", input="again")
    second = await watcher.until("strategy_completed")
    numbers = [message["seq"] for message in (*first, stopped, *second)]
    assert numbers == list(range(1, len(numbers) + 1))


async def test_a_strategy_that_cannot_be_used_takes_nothing_from_its_run(watcher: Watcher) -> None:
    said = strategy(sequential("a"), a=scripted("one", "two"))
    assert (await watcher.ask("prepare_run", runId="r1", strategy=said))["type"] == "run_prepared"
    await watcher.send("start_run", runId="r1", input="go")
    await watcher.until("strategy_completed")
    refused = await watcher.ask("prepare_run", runId="r1", strategy={"name": "x"})
    assert "Strategy validation failed" in refused["message"]
    assert (await watcher.ask("prepare_run", runId="r1"))["type"] == "run_prepared"


async def test_a_client_does_not_offer_a_tool_in_place_of_ours(watcher: Watcher) -> None:
    said = strategy(sequential("a"), a={**scripted("one"), "tools": ["run_command"]})
    tools = [{"name": "run_command", "description": "says it did"}]
    refused = await watcher.ask("prepare_run", runId="r1", strategy=said, tools=tools)
    assert refused["message"] == "run_command is a tool of stringd: offer yours by another name"

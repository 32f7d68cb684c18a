"""Preparations that overlap: the latest one counts."""

import threading
from pathlib import Path
from typing import Any

import pytest

from stringd.runs.engine import remembered as memory
from stringd.runs.engine.loading import prepare
from stringd.runs.handlers import prepare as handler
from stringd.system.file_marks import mark, settled
from tests.runs.support import (
    Json,
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


@pytest.fixture(autouse=True)
def _for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """However slow the machine is, what is remembered is forgotten only for a reason."""
    monkeypatch.setattr(memory, "MEMORY_SECONDS", 3600.0)


async def remembered(server: RunsServer, watcher: Watcher, path: Path) -> None:
    """Prepare a run when everything was written long enough ago to be remembered."""
    await wait_until(lambda: settled([mark(path), mark(server.trust_store.file)]))
    assert (await prepared(watcher, path, "before"))["strategyName"] == "Test"


async def prepared(watcher: Watcher, path: Path, run_id: str, **more: Any) -> Json:
    return await watcher.ask("prepare_run", runId=run_id, strategyPath=str(path), **more)


async def test_a_strategy_that_did_not_change_is_not_read_again(
    server: RunsServer, watcher: Watcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = server.own(strategy(sequential("a"), a=scripted("x")))
    await remembered(server, watcher, path)

    def never(*_: Any, **__: Any) -> Any:
        raise AssertionError("it is read")

    monkeypatch.setattr(handler, "prepare", never)
    assert (await watcher.run(path, "go", "second"))[-1]["result"] == "x"


async def test_a_changed_strategy_is_read_again_at_once(
    server: RunsServer, watcher: Watcher
) -> None:
    path = server.own(strategy(sequential("a"), a=scripted("x")))
    await remembered(server, watcher, path)
    server.own(strategy(sequential("a"), a=scripted("y")))
    assert (await watcher.run(path, "go", "second"))[-1]["result"] == "y"
    path.unlink()
    assert "not found" in (await prepared(watcher, path, "third"))["message"]


async def test_trust_that_is_taken_back_counts_at_once(
    server: RunsServer, watcher: Watcher
) -> None:
    path = server.strategy(strategy(sequential("a"), a={"type": "acp", "command": ["sh"]}))
    assert (await prepared(watcher, path, "first"))["code"] == "PREPARE_FAILED"
    server.trust(path)
    await remembered(server, watcher, path)
    server.trust_store.remove(path)
    assert (await prepared(watcher, path, "second"))["code"] == "PREPARE_FAILED"


async def test_an_id_that_was_used_is_seen_although_the_strategy_is_remembered(
    server: RunsServer, watcher: Watcher
) -> None:
    path = server.own(strategy(sequential("a"), a=scripted("x")))
    await watcher.run(path, "go", "used")
    await remembered(server, watcher, path)
    again = await prepared(watcher, path, "used")
    assert again["conversation"]["records"]


async def test_tools_of_a_client_are_remembered_for_nobody(
    server: RunsServer, watcher: Watcher
) -> None:
    path = server.own(strategy(sequential("a"), a={**scripted("x"), "tools": ["mine"]}))
    mine = {"name": "mine", "description": "d", "parameters": {"type": "object"}}
    first = await prepared(watcher, path, "first", tools=[mine])
    assert first["type"] == "run_prepared"
    other = await server.watcher()
    assert "mine" in (await prepared(other, path, "second"))["message"]

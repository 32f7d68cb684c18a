"""Slow clients: told, taken off, welcome back; nobody waits for them."""

import asyncio
import json
from typing import Any

import pytest

from tests.requirements import proves
from tests.runs.schema import problems
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

LONG = strategy(sequential("a"), a=scripted({"chunks": ["x"] * 50}))


def received(client: Any) -> list[dict[str, Any]]:
    messages = [json.loads(frame) for frame in client.take()]
    assert [problem for message in messages for problem in problems(message)] == []
    return messages


@proves("RUN-28")
async def test_a_client_that_falls_behind_is_told_once_and_resumes_without_a_gap(
    server: RunsServer, watcher: Watcher
) -> None:
    await watcher.ask("prepare_run", runId="r", strategyPath=str(server.strategy(LONG)))
    slow = server.service.connect(lambda: None, max_frames=10)
    slow.receive('{"type":"subscribe","runId":"r"}')
    await watcher.send("start_run", runId="r")
    whole = await watcher.until("strategy_completed")
    got = received(slow)
    assert got[:10] == whole[:10]
    told = got[10]
    assert (told["type"], told["code"], told["nextSeq"]) == ("error", "SUBSCRIBER_BEHIND", 11)
    assert len(got) == 11
    slow.receive('{"type":"subscribe","runId":"r","fromSeq":11}')
    rest: list[dict[str, Any]] = []
    while len(rest) < len(whole) - 10:
        await watcher.ask("ping")
        rest += received(slow)
    assert rest == whole[10:]
    slow.gone()


async def test_a_client_that_left_gets_nothing_and_costs_nothing(
    server: RunsServer, watcher: Watcher
) -> None:
    await watcher.ask("prepare_run", runId="r", strategyPath=str(server.strategy(LONG)))
    left = server.service.connect(lambda: None)
    left.receive('{"type":"subscribe","runId":"r"}')
    left.gone()
    left.gone()
    await watcher.send("start_run", runId="r")
    await watcher.ended()
    assert left.take() == []
    assert server.service.connected_clients == 1


async def test_a_wake_comes_once_for_what_is_queued_together(server: RunsServer) -> None:
    woken: list[int] = []
    client = server.service.connect(lambda: woken.append(1))
    client.receive('{"type":"ping"}')
    client.receive('{"type":"ping"}')
    assert (len(woken), len(client.take())) == (1, 2)
    client.receive("{")
    assert len(woken) == 2
    client.gone()


@pytest.mark.parametrize(
    "meanwhile",
    [
        '{"type":"subscribe","runId":"r"}',
        '{"type":"subscribe","runId":"r","fromSeq":1}',
        '{"type":"prepare_run","runId":"r"}',
    ],
)
async def test_what_a_client_asks_for_while_it_replays_doubles_nothing(
    server: RunsServer, watcher: Watcher, meanwhile: str
) -> None:
    whole = await watcher.run(server.strategy(LONG), "go", "r")
    slow = server.service.connect(lambda: None, max_frames=5)
    slow.receive('{"type":"subscribe","runId":"r","fromSeq":1}')
    await watcher.ask("ping")
    first = received(slow)
    assert first == whole[: len(first)]
    slow.receive(meanwhile)
    await wait_until(lambda: len(slow.tasks) == 1)
    if "prepare_run" not in meanwhile:
        await watcher.ask("prepare_run", runId="r")
    await watcher.send("continue_run", runId="r", input="again")
    again = await watcher.until("strategy_completed")
    every = [*whole, *again]
    expected = every if "fromSeq" in meanwhile else every[len(first) :]
    got: list[dict[str, Any]] = []
    while not got or got[-1] != every[-1]:
        await watcher.ask("ping")
        got += [message for message in received(slow) if message["type"] != "run_prepared"]
    assert [message["seq"] for message in got] == [message["seq"] for message in expected]
    slow.gone()


async def test_a_client_that_unsubscribes_hears_no_more_of_a_replay(
    server: RunsServer, watcher: Watcher
) -> None:
    await watcher.run(server.strategy(LONG), "go", "r")
    slow = server.service.connect(lambda: None, max_frames=5)
    slow.receive('{"type":"subscribe","runId":"r","fromSeq":1}')
    await watcher.ask("ping")
    slow.receive('{"type":"unsubscribe","runId":"r"}')
    await wait_until(lambda: not slow.tasks)
    slow.take()
    await watcher.ask("prepare_run", runId="r")
    await watcher.send("continue_run", runId="r", input="again")
    await watcher.ended()
    assert slow.take() == []
    slow.gone()


async def test_shutdown_does_not_wait_for_a_replay_nobody_reads(
    server: RunsServer, watcher: Watcher
) -> None:
    await watcher.run(server.strategy(LONG), "go", "r")
    stuck = server.service.connect(lambda: None, max_frames=5)
    stuck.receive('{"type":"subscribe","runId":"r","fromSeq":1}')
    await watcher.ask("ping")
    assert len(stuck.tasks) == 1
    stopping = asyncio.create_task(server.service.stop())
    await wait_until(lambda: stuck.closing)
    stuck.gone()
    async with asyncio.timeout(WAIT_SECONDS):
        await stopping
    await wait_until(lambda: not stuck.tasks)


async def test_one_huge_answer_does_not_make_its_reader_late(
    server: RunsServer, watcher: Watcher
) -> None:
    huge = strategy(sequential("a", "b"), a=scripted("{message}" * 100), b=scripted("ok"))
    messages = await watcher.run(server.strategy(huge), "y" * 30_000)
    assert messages[-1]["result"] == "ok"
    assert [m for m in watcher.seen if m["type"] == "error"] == []

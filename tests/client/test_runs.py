"""The runs client against a real server."""

from pathlib import Path

import pytest

from stringd.client.runs import RequestFailedError, RunsClient, UnreachableError
from stringd.wire.runs import messages as m
from stringd.wire.runs import requests as r
from tests.runs.support import RunsServer, scripted, sequential, serving, strategy
from tests.support.daemon import free_port

pytestmark = pytest.mark.anyio

ONE = strategy(sequential("a"), a=scripted("hello"))


async def test_it_prepares_starts_and_follows_a_run(tmp_path: Path) -> None:
    async with serving(tmp_path) as server, RunsClient(server.port) as client:
        path = str(server.strategy(ONE))
        prepared = await client.ask(r.PrepareRun(run_id="r", strategy_path=path))
        assert isinstance(prepared, m.RunPrepared)
        await client.send(r.StartRun(run_id="r"))
        # Answers to later questions are picked out; events wait their turn, in order.
        assert isinstance(await client.ask(r.ListStrategies()), m.StrategyList)
        seen: list[m.DaemonMessage] = []
        async for message in client.messages():
            seen.append(message)
            if isinstance(message, m.StrategyCompleted):
                break
        assert [message.seq for message in seen if isinstance(message, m.RunBroadcast)] == list(
            range(1, len(seen) + 1)
        )


async def test_a_refusal_is_raised_with_its_code(tmp_path: Path) -> None:
    async with serving(tmp_path) as server, RunsClient(server.port) as client:
        with pytest.raises(RequestFailedError, match="Run not found: x") as refused:
            await client.ask(r.PrepareRun(run_id="x"))
        assert refused.value.code == "PREPARE_FAILED"


async def test_nobody_there_is_told_at_once() -> None:
    with pytest.raises(UnreachableError, match="no daemon answers"):
        async with RunsClient(free_port()):
            pass


async def test_a_daemon_that_leaves_ends_the_messages(tmp_path: Path) -> None:
    async with serving(tmp_path) as server, RunsClient(server.port) as client:
        await stop(server)
        with pytest.raises(UnreachableError, match="closed the connection"):
            await client.ask(r.Ping())


async def stop(server: RunsServer) -> None:
    await server.service.stop()

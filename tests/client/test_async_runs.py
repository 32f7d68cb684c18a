"""Runs followed from Python, over the daemon's WebSocket and through broken connections."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec import Raw
from websockets.asyncio.server import ServerConnection, serve

from stringd.client import (
    AsyncRuns,
    RequestFailedError,
    RunFailedError,
    UnreachableError,
)
from stringd.client.runs import RunsError
from stringd.wire.runs import encode
from stringd.wire.runs import messages as m
from stringd.wire.runs.types import Usage
from tests.support.daemon import WAIT_SECONDS, Daemon, free_port

pytestmark = pytest.mark.anyio


def strategy(folder: Path, *steps: str, **agents: Any) -> str:
    flow = {"name": "F", "type": "sequential", "steps": [{"agent": step} for step in steps]}
    path = folder / "work.yaml"
    source = {"name": "work", "version": "1.0", "agents": agents, "flow": flow}
    path.write_text(yaml.safe_dump(source))
    return str(path)


def scripted(*script: Any, **more: Any) -> dict[str, Any]:
    demo = {"demo": {"script": list(script)}}
    return {"model": "demo/script", "providerOptions": demo, **more}


ECHO = {"model": "demo/echo"}
USER = {"type": "user"}


async def test_a_run_is_followed_to_its_result(daemon: Daemon, tmp_path: Path) -> None:
    async with AsyncRuns(daemon.port) as runs:
        run = await runs.run(strategy(tmp_path, "a", a=ECHO), "hello")
        events = [event async for event in run]
    assert isinstance(events[0], m.StrategyStarted)
    assert isinstance(events[-1], m.StrategyCompleted)
    assert events[-1].result == "hello"
    assert [event.seq for event in events] == list(range(1, len(events) + 1))


async def test_the_result_alone_is_one_line(daemon: Daemon, tmp_path: Path) -> None:
    async with AsyncRuns(daemon.port) as runs:
        run = await runs.run(strategy(tmp_path, "a", a=ECHO), "hello")
        assert await run.result() == "hello"
        assert run.run_id in {each.run_id for each in await runs.runs()}
        assert (await runs.timeline(run.run_id)).conversation.records[-1].text == "hello"


async def test_a_failed_run_is_an_exception_with_its_code(daemon: Daemon, tmp_path: Path) -> None:
    async with AsyncRuns(daemon.port) as runs:
        run = await runs.run(strategy(tmp_path, "a", a=scripted({"error": "no"})), "x")
        with pytest.raises(RunFailedError, match="no") as caught:
            await run.result()
    assert caught.value.code


async def test_a_strategy_is_found_by_its_name(daemon: Daemon, tmp_path: Path) -> None:
    async with AsyncRuns(daemon.port) as runs:
        assert "hello" in [each.name for each in await runs.strategies(str(tmp_path))]
        run = await runs.run("hello", "world", cwd=str(tmp_path))
        assert (await run.result()).startswith("Hello! You said: world")
        with pytest.raises(RequestFailedError, match="Strategy file not found: helo"):
            await runs.prepare("helo", cwd=str(tmp_path))


async def test_prompts_are_answered_and_steering_is_heard(daemon: Daemon, tmp_path: Path) -> None:
    ask = {"tools": [{"name": "ask_question", "args": {"question": "Why?"}}]}
    asking = scripted(ask, "thanks", tools=["ask_question"])
    path = strategy(tmp_path, "you", "asking", "echo", you=USER, asking=asking, echo=ECHO)
    async with AsyncRuns(daemon.port) as runs:
        run = await runs.run(path)
        seen: list[m.RunBroadcast] = []
        async for event in run:
            seen.append(event)
            if isinstance(event, m.RequestInput):
                await run.steer("politely")
                await runs.answer(event, "hello")
            elif isinstance(event, m.RequestQuestion):
                await runs.answer(event, "because")
    kinds = {type(event) for event in seen}
    assert {m.RequestInput, m.SteerQueued, m.RequestQuestion, m.StrategyCompleted} <= kinds


async def test_a_call_under_way_is_steered_and_its_run_deleted(
    daemon: Daemon, tmp_path: Path
) -> None:
    ask = {"tools": [{"name": "ask_question", "args": {"question": "Why?"}}]}
    path = strategy(tmp_path, "a", a=scripted(ask, "thanks", tools=["ask_question"]))
    async with AsyncRuns(daemon.port) as runs:
        run = await runs.run(path)
        async for event in run:
            if isinstance(event, m.RequestQuestion):
                await run.steer("be brief", mode="steer")
                await runs.answer(event, "because")
        [record] = (await runs.timeline(run.run_id)).conversation.records
        assert "be brief" in str(record.response_messages)
        await runs.delete(run.run_id)
        with pytest.raises(RequestFailedError, match="Run not found"):
            await runs.delete(run.run_id)


async def test_a_permission_is_decided(daemon: Daemon, tmp_path: Path) -> None:
    target = tmp_path / "made.txt"
    make = {"tools": [{"name": "create_file", "args": {"path": str(target), "content": "x"}}]}
    path = strategy(tmp_path, "a", a=scripted(make, "done", tools=["create_file"]))
    async with AsyncRuns(daemon.port) as runs:
        run = await runs.run(path, "go", cwd=str(daemon.home))
        async for event in run:
            if isinstance(event, m.RequestPermission):
                assert not target.exists()
                await runs.decide(event, "allow")
    assert target.read_text() == "x"


async def test_a_finished_run_goes_on(daemon: Daemon, tmp_path: Path) -> None:
    async with AsyncRuns(daemon.port) as runs:
        first = await runs.run(strategy(tmp_path, "a", a=ECHO), "one")
        assert await first.result() == "one"
        second = await runs.continue_run(first.run_id, "two")
        events = [event async for event in second]
    assert isinstance(events[-1], m.StrategyCompleted)
    assert events[-1].result == "two"
    assert sum(isinstance(event, m.StrategyCompleted) for event in events) == 1


async def test_a_run_can_be_stopped(daemon: Daemon, tmp_path: Path) -> None:
    async with AsyncRuns(daemon.port) as runs:
        run = await runs.run(strategy(tmp_path, "you", you=USER))
        await run.stop()
        with pytest.raises(RunFailedError) as caught:
            await run.result()
    assert caught.value.code == "CANCELLED"


async def test_refusals_carry_the_daemons_code(daemon: Daemon, tmp_path: Path) -> None:
    async with AsyncRuns(daemon.port) as runs:
        with pytest.raises(RequestFailedError) as missing:
            await runs.prepare(str(tmp_path / "none.yaml"))
        with pytest.raises(RequestFailedError) as unprepared:
            await runs.start("nothing")
        with pytest.raises(RequestFailedError) as unknown:
            await runs.follow("nothing")
        with pytest.raises(RequestFailedError) as idle:
            await runs.steer("nothing", "faster")
    codes = [each.value.code for each in (missing, unprepared, unknown, idle)]
    assert codes == ["PREPARE_FAILED", "START_FAILED", "SUBSCRIBE_ERROR", "RUN_NOT_STEERABLE"]


async def test_a_second_client_sees_the_same_events(daemon: Daemon, tmp_path: Path) -> None:
    path = strategy(tmp_path, "you", "echo", you=USER, echo=ECHO)
    async with AsyncRuns(daemon.port) as first, AsyncRuns(daemon.port) as second:
        run = await first.run(path)
        followed = await second.follow(run.run_id)
        async for event in followed:
            if isinstance(event, m.RequestInput):
                await second.answer(event, "from the second")
        assert await run.result() == "from the second"


class Cable:
    """A forwarding port that can be cut."""

    def __init__(self, port: int, target: int) -> None:
        self.port = port
        self._target = target
        self._open: set[asyncio.StreamWriter] = set()
        self.connections = 0

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._target)
        self._open |= {writer, far_writer}
        await asyncio.gather(_pump(reader, far_writer), _pump(far_reader, writer))

    def cut(self) -> None:
        for writer in self._open:
            writer.transport.abort()
        self._open.clear()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65536):
            writer.write(data)
    except ConnectionError:
        pass
    finally:
        writer.close()


@asynccontextmanager
async def cable(target: int) -> AsyncIterator[Cable]:
    line = Cable(free_port(), target)
    server = await asyncio.start_server(line.carry, "127.0.0.1", line.port)
    try:
        yield line
    finally:
        line.cut()
        server.close()


async def test_a_broken_connection_loses_and_repeats_nothing(
    daemon: Daemon, tmp_path: Path
) -> None:
    path = strategy(tmp_path, "you", "echo", you=USER, echo=scripted("a b c d e"))
    events: list[m.RunBroadcast] = []
    async with (
        asyncio.timeout(WAIT_SECONDS),
        cable(daemon.port) as line,
        AsyncRuns(line.port) as runs,
        AsyncRuns(daemon.port) as direct,
    ):
        run = await runs.run(path)
        async for event in run:
            events.append(event)
            if isinstance(event, m.RequestInput):
                line.cut()
                await direct.answer(event, "meanwhile")
    assert line.connections == 2
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert isinstance(events[-1], m.StrategyCompleted)


async def test_who_was_too_slow_catches_up_by_itself() -> None:
    started = m.StrategyStarted(
        run_id="r", seq=1, strategy_name="s", agents=[], flow_tree=Raw(b"{}")
    )
    behind = m.Error(code="SUBSCRIBER_BEHIND", message="slow", run_id="r", next_seq=2)
    usage = Usage(prompt_tokens=0, completion_tokens=0)
    ended = m.StrategyCompleted(run_id="r", seq=2, result="there", usage=usage)

    async def too_fast(connection: ServerConnection) -> None:
        async for frame in connection:
            match json.loads(frame):
                case {"type": "start_run"}:
                    await connection.send(encode(started))
                    await connection.send(encode(behind))
                case {"type": "subscribe", "fromSeq": 2}:
                    await connection.send(encode(ended))

    async with serve(too_fast, "127.0.0.1", 0) as server:
        [listening] = server.sockets
        async with AsyncRuns(listening.getsockname()[1]) as runs, asyncio.timeout(WAIT_SECONDS):
            run = await runs.start("r")
            assert [event.seq async for event in run] == [1, 2]


async def test_a_daemon_that_stays_away_is_an_error(tmp_path: Path) -> None:
    with Daemon(tmp_path) as daemon:
        async with AsyncRuns(daemon.port, patience=0.3) as runs:
            run = await runs.run(strategy(tmp_path, "you", you=USER))
            await asyncio.to_thread(daemon.kill)
            with pytest.raises(UnreachableError):
                await run.result()


async def test_a_run_the_daemon_forgot_is_an_error_and_can_be_resumed(tmp_path: Path) -> None:
    with Daemon(tmp_path) as daemon:
        async with AsyncRuns(daemon.port) as runs, asyncio.timeout(WAIT_SECONDS):
            run = await runs.run(strategy(tmp_path, "you", "echo", you=USER, echo=ECHO))
            await asyncio.to_thread(daemon.kill)
            await asyncio.to_thread(daemon.start)
            with pytest.raises(RequestFailedError, match="not found"):
                await run.result()
            again = await runs.continue_run(run.run_id, resume=True)
            async for event in again:
                if isinstance(event, m.RequestInput):
                    await runs.answer(event, "at last")
            assert isinstance(event, m.StrategyCompleted)
            assert event.result == "at last"


async def test_nobody_at_the_port_is_said() -> None:
    with pytest.raises(UnreachableError):
        async with AsyncRuns(free_port()):
            pass


async def test_24_outside_async_with_the_error_says_so() -> None:
    with pytest.raises(RunsError, match="use `async with AsyncRuns"):
        await AsyncRuns().runs()

"""Runs followed from Python without `await`."""

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from threading import enumerate as threads

import pytest

from stringd.client import RequestFailedError, RunFailedError, Runs, UnreachableError
from stringd.client.runs import RunsError
from stringd.wire.runs import messages as m
from tests.client.test_async_runs import ECHO, USER, scripted, strategy
from tests.support.daemon import WAIT_SECONDS, Daemon, free_port


@pytest.fixture
def runs(daemon: Daemon) -> Iterator[Runs]:
    with Runs(daemon.port) as connected:
        yield connected
    assert "stringd-runs" not in {thread.name for thread in threads()}


def test_a_run_is_followed_to_its_result(runs: Runs, tmp_path: Path) -> None:
    run = runs.run(strategy(tmp_path, "a", a=ECHO), "hello")
    events = list(run)
    assert isinstance(events[-1], m.StrategyCompleted)
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert runs.follow(run.run_id).result() == "hello"
    assert run.run_id in {each.run_id for each in runs.runs()}
    assert runs.timeline(run.run_id).conversation.records[-1].text == "hello"
    runs.delete(run.run_id)
    with pytest.raises(RequestFailedError):
        runs.timeline(run.run_id)


def test_a_run_is_answered_steered_and_stopped(runs: Runs, tmp_path: Path) -> None:
    run = runs.run(strategy(tmp_path, "you", "a", you=USER, a=ECHO))
    for event in run:
        if isinstance(event, m.RequestInput):
            run.steer("on the way")
            runs.answer(event, "typed")
    assert isinstance(event, m.StrategyCompleted)
    waiting = runs.run(strategy(tmp_path, "you", you=USER))
    for event in waiting:
        if isinstance(event, m.RequestInput):
            waiting.stop()
    assert isinstance(event, m.StrategyError)


def test_a_failed_run_is_an_exception_with_its_code(runs: Runs, tmp_path: Path) -> None:
    run = runs.run(strategy(tmp_path, "a", a=scripted({"error": "no"})), "x")
    with pytest.raises(RunFailedError, match="no"):
        run.result()
    with pytest.raises(RequestFailedError, match="Strategy file not found: helo"):
        runs.prepare("helo", cwd=str(tmp_path))


def test_threads_share_it_and_another_loop_may_run(daemon: Daemon, tmp_path: Path) -> None:
    path = strategy(tmp_path, "a", a=ECHO)

    async def in_a_notebook() -> list[str]:
        with Runs(daemon.port) as runs, ThreadPoolExecutor(4) as pool:
            return list(pool.map(lambda text: runs.run(path, text).result(), "abcd"))

    assert asyncio.run(in_a_notebook()) == ["a", "b", "c", "d"]


def test_whoever_waits_when_it_is_closed_is_told(daemon: Daemon, tmp_path: Path) -> None:
    asked = Event()

    def wait(runs: Runs) -> None:
        for event in runs.run(strategy(tmp_path, "you", you=USER)):
            if isinstance(event, m.RequestInput):
                asked.set()

    with ThreadPoolExecutor(1) as pool:
        with Runs(daemon.port) as runs:
            waiting = pool.submit(wait, runs)
            assert asked.wait(WAIT_SECONDS)
        assert isinstance(waiting.exception(WAIT_SECONDS), RunsError)


def test_without_a_connection_it_says_what_to_do() -> None:
    with pytest.raises(UnreachableError, match="Start it: stringd up"), Runs(free_port()):
        pass
    with pytest.raises(RunsError, match="use `with Runs"):
        Runs(free_port()).runs()


def test_a_run_outlives_its_connection_only_at_the_daemon(daemon: Daemon, tmp_path: Path) -> None:
    with Runs(daemon.port) as runs:
        run = runs.run(strategy(tmp_path, "a", a=ECHO), "x")
    with pytest.raises(RunsError, match="inside its `with` block"):
        run.result()

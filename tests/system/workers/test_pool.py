"""Workers: what they answer, how they are ended, and what they know."""

import asyncio
import os
import select
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from stringd.system.workers import WorkerError, WorkerTask, ask, await_answer, end_workers
from tests.support.daemon import WAIT_SECONDS

MODULE = "tests.system.workers.functions"


def task(function: str, seconds: float = 60.0) -> WorkerTask:
    return WorkerTask(MODULE, function, seconds)


def told_by(pipe: Path) -> int:
    """The number somebody writes into a pipe."""
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        ready, _, _ = select.select([reading], [], [], WAIT_SECONDS)
        assert ready, "nobody wrote"
        return int(os.read(reading, 100))
    finally:
        os.close(reading)


@pytest.mark.parametrize(
    "text", ["", "a", "é€\U0001f600", "a\ud800b\udc80", "\0\n\r", "x" * 5_000_000]
)
def test_any_text_goes_there_and_back(text: str) -> None:
    assert ask(task("echo"), text) == text


def test_a_function_may_take_several_texts() -> None:
    assert ask(task("echo"), "a", "", "b") == "a||b"


@pytest.mark.anyio
async def test_the_loop_waits_without_a_thread_of_its_own() -> None:
    answers = await asyncio.gather(*(await_answer(task("echo"), str(n)) for n in range(10)))
    assert answers == [str(n) for n in range(10)]


def test_a_worker_serves_many_texts() -> None:
    assert ask(task("pid")) == ask(task("pid"))


def test_what_takes_too_long_is_ended_and_the_limit_named() -> None:
    first = ask(task("pid"))
    with pytest.raises(WorkerError, match=r"^it takes longer than 0\.5 s$"):
        ask(task("stuck", 0.5))
    assert not Path(f"/proc/{first}").exists()
    assert ask(task("echo"), "next") == "next"


def test_a_worker_that_dies_fails_one_text_and_not_the_next() -> None:
    with pytest.raises(WorkerError, match="broke off"):
        ask(task("killed"))
    assert ask(task("echo"), "next") == "next"


@pytest.mark.parametrize(
    ("function", "told"),
    [
        ("greedy", "it takes more than 2048 MB of memory"),
        ("recursive", "it is nested too deeply"),
        ("wrong", "ValueError: not like this"),
    ],
)
def test_a_failure_is_told(function: str, told: str) -> None:
    with pytest.raises(WorkerError, match=f"^{told}$"):
        ask(task(function))
    assert ask(task("echo"), "next") == "next"


def test_a_worker_inherits_no_keys_and_no_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    with open(__file__, "rb") as kept:
        os.set_inheritable(kept.fileno(), True)
        names = ask(task("names_of_environment")).split()
        opened = ask(task("open_descriptors"))
    assert set(names) <= {"HOME", "LD_LIBRARY_PATH", "PATH", "TMPDIR", "LC_CTYPE"}
    assert __file__ not in opened


def test_workers_end_when_they_are_told_to_busy_or_not(tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    os.mkfifo(mark)
    with ThreadPoolExecutor(1) as threads:
        answer = threads.submit(ask, task("stuck"), str(mark))
        busy = told_by(mark)
        end_workers()
        with pytest.raises(WorkerError):
            answer.result(WAIT_SECONDS)
    assert not Path(f"/proc/{busy}").exists()
    assert ask(task("echo"), "again") == "again"


def test_no_thread_is_left_of_workers_that_ended() -> None:
    before = threading.active_count()
    ask(task("echo"), "a")
    end_workers()
    assert threading.active_count() <= before


@pytest.mark.parametrize("function", ["stuck", "pid_then_wait"])
def test_workers_do_not_outlive_a_daemon_that_is_killed(tmp_path: Path, function: str) -> None:
    mark = tmp_path / "pid"
    os.mkfifo(mark)
    program = (
        "from pathlib import Path\n"
        "from stringd.system.workers import WorkerTask, ask\n"
        f"if {function!r} == 'stuck':\n"
        f"    ask(WorkerTask({MODULE!r}, 'stuck', 600.0), {str(mark)!r})\n"
        f"pid = ask(WorkerTask({MODULE!r}, 'pid', 60.0))\n"
        f"Path({str(mark)!r}).write_text(pid)\n"
        "import signal; signal.pause()\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    daemon = subprocess.Popen([sys.executable, "-c", program], env=environment)
    try:
        worker = told_by(mark)
        handle = os.pidfd_open(worker)
    finally:
        daemon.send_signal(signal.SIGKILL)
        daemon.wait()
    try:
        ended, _, _ = select.select([handle], [], [], WAIT_SECONDS)
        assert ended, "the worker lives on"
    finally:
        os.close(handle)

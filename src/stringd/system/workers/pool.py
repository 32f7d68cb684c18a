"""The daemon's side: a few processes, started when first needed and ended when idle.

Each has a thread that starts it, hands it texts and waits. The kernel ends a worker with the
thread that started it, so it must be one that lives as long as the worker may.
"""

import asyncio
import os
import queue
import socket
import sys
import threading
from concurrent.futures import Future
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from stringd.system.processes.orphans import claim, disclaim
from stringd.system.workers.child import DONE
from stringd.system.workers.frames import pack, receive

if TYPE_CHECKING:
    import subprocess

WORKERS: Final = 2
IDLE_SECONDS: Final = 60.0
"""A worker nobody asked for so long is ended."""
_START_SECONDS: Final = 60.0
# Where the home is counts when commands are judged. Nothing of the daemon's own, and no keys.
_INHERITED: Final = ("HOME", "LD_LIBRARY_PATH", "PATH", "TMPDIR")
_PROGRAM: Final = (
    "import sys; sys.path[:] = {path!r}\n"
    "from stringd.system.workers.child import main; main({parent})"
)


class WorkerError(Exception):
    """A worker gave no answer; the text says why, and completes a sentence about the text."""


class WorkerTask(NamedTuple):
    """A function of texts that gives a text, named by its module, and how long it may take."""

    module: str
    function: str
    seconds: float


class _WorkerJob(NamedTuple):
    task: WorkerTask
    texts: tuple[str, ...]
    answer: "Future[str]"


def ask(task: WorkerTask, *texts: str) -> str:
    """The answer of a worker; for threads that may wait. Raises `WorkerError`."""
    return _pool.submit(task, texts).result()


async def await_answer(task: WorkerTask, *texts: str) -> str:
    """The answer of a worker. Raises `WorkerError`."""
    return await asyncio.wrap_future(_pool.submit(task, texts))


def end_workers() -> None:
    """End every worker now; the next text starts one again."""
    _pool.close()


class _WorkerPool:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._jobs: queue.SimpleQueue[_WorkerJob | None] = queue.SimpleQueue()
        self._workers: dict[threading.Thread, _Worker] = {}
        self._waiting = 0

    def submit(self, task: WorkerTask, texts: tuple[str, ...]) -> "Future[str]":
        answer: Future[str] = Future()
        with self._lock:
            self._jobs.put(_WorkerJob(task, texts, answer))
            if not self._waiting and len(self._workers) < WORKERS:
                worker = _Worker()
                thread = threading.Thread(target=self._serve, args=(worker,), daemon=True)
                self._workers[thread] = worker
                thread.start()
        return answer

    def close(self) -> None:
        with self._lock:
            workers = dict(self._workers)
            with suppress(queue.Empty):
                while (job := self._jobs.get_nowait()) is not None:
                    if job.answer.set_running_or_notify_cancel():
                        job.answer.set_exception(WorkerError("it was not read before the end"))
            for worker in workers.values():
                worker.interrupt()
                self._jobs.put(None)
        for thread in workers:
            thread.join()

    def _serve(self, worker: "_Worker") -> None:
        try:
            while (job := self._next()) is not None:
                if job.answer.set_running_or_notify_cancel():
                    worker.work(job)
        finally:
            worker.end()

    def _next(self) -> _WorkerJob | None:
        with self._lock:
            self._waiting += 1
        job: _WorkerJob | None = None
        with suppress(queue.Empty):
            job = self._jobs.get(timeout=IDLE_SECONDS)
        with self._lock:
            self._waiting -= 1
            if job is None:
                # A job that came since then starts a thread of its own.
                del self._workers[threading.current_thread()]
        return job


class _Worker:
    """One process at a time, started with the first text and again after it had to be ended."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: socket.socket | None = None

    def work(self, job: _WorkerJob) -> None:
        try:
            job.answer.set_result(self._answer(job))
        except WorkerError as error:
            job.answer.set_exception(error)
        except BaseException as error:  # noqa: BLE001 - somebody waits for the answer
            self.end()
            job.answer.set_exception(WorkerError(f"its worker failed: {error}"))

    def _answer(self, job: _WorkerJob) -> str:
        seconds = job.task.seconds
        try:
            connection = self._connected()
            connection.settimeout(seconds)
            connection.sendall(pack((str(seconds), job.task.module, job.task.function, *job.texts)))
            status, text = receive(connection, seconds)
        except TimeoutError:
            self.end()
            raise WorkerError(f"it takes longer than {seconds:g} s") from None
        except (EOFError, OSError, ValueError):
            self.end()
            raise WorkerError("the program that reads it broke off") from None
        if status != DONE:
            self.end()
            raise WorkerError(text)
        return text

    def _connected(self) -> socket.socket:
        if self._connection is None:
            import subprocess  # a daemon that reads nothing large never needs it

            ours, theirs = socket.socketpair()
            path = [entry for entry in sys.path if entry]
            program = _PROGRAM.format(path=path, parent=os.getpid())
            with theirs:
                self._process = subprocess.Popen(
                    [sys.executable, "-I", "-c", program],
                    stdin=theirs.fileno(),
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    cwd="/",
                    env={name: os.environ[name] for name in _INHERITED if name in os.environ},
                    start_new_session=True,
                )
            claim(self._process.pid)
            self._connection = ours
            # How long Python takes to start says nothing about the text.
            receive(ours, _START_SECONDS)
        return self._connection

    def interrupt(self) -> None:
        """End the process; whoever waits for its answer learns of it."""
        if (process := self._process) is not None:
            process.kill()

    def end(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            disclaim(self._process.pid)
            self._process = None


_pool: Final = _WorkerPool()

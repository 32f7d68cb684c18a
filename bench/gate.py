"""The gate against the floor it stands on: the same commands run without it.

The approval is automated by an in-process `Approver` that says yes at once; everything else is the
gate as it ships: socket, validation, audit log with its sync, executor, response.
"""

import os
import pty
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

from bench.table import Row
from stringd.client.gate import Gate

TITLE = "Gate"
PIPELINE = [["yes"], ["head", "-c", "16M"]]


def rows() -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder, _gate(Path(folder)) as gate:
        ours, floor = _interleaved(
            lambda: _check(gate, [["true"]]), lambda: subprocess.run(["true"], check=True), 200
        )
        yield Row(
            "approved `true` over `subprocess.run`, p50",
            f"{ours:.2f} ms",
            f"{floor:.2f} ms",
            ours / floor,
            f"≤ 3 ms more (is {ours - floor:.2f} ms)",
        )
        ours, floor = _interleaved(lambda: _check(gate, PIPELINE), _shell_pipe, 30)
        yield Row(
            "`yes` into `head -c 16M`, request to response, p50",
            f"{ours:.0f} ms",
            f"{floor:.0f} ms (shell)",
            floor / ours,
            "≥ 0.5 of the shell's speed",
        )
    key = _key_to_answer_ms()
    yield Row(
        "`y` after the silence to the answer for `true`, p50",
        f"{key:.1f} ms",
        "–",
        None,
        "≤ 30 ms",
    )
    yield Row("resident memory, idle", f"{_resident_mib():.1f} MiB", "–", None, "≤ 16 MiB")
    start, bare = _start_ms(), _interleaved(_bare_python, _bare_python, 5)[0]
    yield Row(
        "`stringd gate` to ready, p50",
        f"{start:.0f} ms",
        f"{bare:.0f} ms (bare Python)",
        start / bare,
        "≤ 60 ms",
    )
    refused = _cpu_ms(["-m", "stringd", "request", "--socket", "/nonexistent/gate", "true"])
    floor = _cpu_ms(["-c", ""])
    yield Row(
        "`stringd request` without a gate, CPU",
        f"{refused:.0f} ms",
        f"{floor:.0f} ms (bare Python)",
        refused / floor,
        "≤ 40 ms",
    )


def _check(gate: Gate, pipeline: Sequence[Sequence[str]]) -> None:
    response = gate.run(pipeline, privileged=False)
    if response.status != "ok" or response.stages[-1].exit_code != 0:
        raise RuntimeError(f"the gate answered {response}")


def _shell_pipe() -> None:
    done = subprocess.run(["sh", "-c", "yes | head -c 16M"], stdout=subprocess.PIPE, check=True)
    assert len(done.stdout) == 16 * 1024 * 1024


def _interleaved(
    ours: Callable[[], object], floor: Callable[[], object], count: int
) -> tuple[float, float]:
    """Median milliseconds of both, measured in turns so that the machine's moods hit both."""
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(count):
        for call, into in zip((ours, floor), times, strict=True):
            start = time.perf_counter()
            call()
            into.append((time.perf_counter() - start) * 1000)
    return statistics.median(times[0]), statistics.median(times[1])


def _key_to_answer_ms(count: int = 8) -> float:
    """Of the gate as it ships, on a terminal, for a person who waits until keys count."""
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/gate.sock"
        words = [sys.executable, "-m", "stringd", "gate", "--socket", path, "--no-bell"]
        pid, master = pty.fork()
        if pid == 0:
            os.execve(words[0], words, os.environ | {"STRINGD_DATA_DIR": folder})
        try:
            _read_until(master, b"Questions appear here")
            return statistics.median(_key_to_answer(master, Gate(path)) for _ in range(count))
        finally:
            os.kill(pid, signal.SIGTERM)
            os.waitpid(pid, 0)
            os.close(master)


def _bare_python() -> None:
    subprocess.run([sys.executable, "-c", ""], check=True)


def _start_ms(count: int = 9) -> float:
    """From the start of the process to the line that says it is ready, on a terminal."""
    return statistics.median(_one_start_ms() for _ in range(count))


def _one_start_ms() -> float:
    with tempfile.TemporaryDirectory() as folder:
        words = [sys.executable, "-m", "stringd", "gate", "--socket", f"{folder}/gate.sock"]
        started = time.perf_counter()
        pid, master = pty.fork()
        if pid == 0:
            os.execve(words[0], words, os.environ | {"STRINGD_DATA_DIR": folder})
        try:
            _read_until(master, b"Questions appear here")
            return (time.perf_counter() - started) * 1000
        finally:
            os.kill(pid, signal.SIGTERM)
            os.waitpid(pid, 0)
            os.close(master)


def _cpu_ms(words: Sequence[str], count: int = 9) -> float:
    """What a call costs in processor time, which a busy machine changes little."""
    times = []
    for _ in range(count):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, *words], capture_output=True, check=False)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        times.append(spent * 1000)
    return statistics.median(times)


def _key_to_answer(master: int, gate: Gate) -> float:
    answered: list[float] = []

    def ask() -> None:
        _check(gate, [["true"]])
        answered.append(time.perf_counter())

    asking = threading.Thread(target=ask)
    asking.start()
    _read_until(master, b"default=N)")
    # Longer than the arming, and than what would be taken for a key held down.
    time.sleep(1.3)
    pressed = time.perf_counter()
    os.write(master, b"y")
    asking.join()
    _read_until(master, b"exit 0")
    return (answered[0] - pressed) * 1000


def _read_until(master: int, text: bytes) -> None:
    seen = b""
    while text not in seen:
        seen += os.read(master, 65536)


def _resident_mib() -> float:
    """Of the gate as it ships, once it says that it is there."""
    with tempfile.TemporaryDirectory() as folder:
        words = [sys.executable, "-m", "stringd", "gate", "--socket", f"{folder}/gate.sock"]
        process = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
            env=os.environ | {"STRINGD_DATA_DIR": folder},
        )
        try:
            assert process.stderr is not None
            process.stderr.readline()
            pages = int(Path(f"/proc/{process.pid}/statm").read_text().split()[1])
        finally:
            process.terminate()
            process.communicate()
    return pages * os.sysconf("SC_PAGE_SIZE") / 1024 / 1024


@contextmanager
def _gate(folder: Path) -> Iterator[Gate]:
    """A gate process of its own that approves by itself; only this file knows how."""
    path = folder / "gate.sock"
    root = Path(__file__).resolve().parents[1]
    read, write = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.gate", str(folder), str(write)], pass_fds=[write], cwd=root
    )
    os.close(write)
    try:
        with os.fdopen(read) as ready:
            ready.read()
        yield Gate(str(path))
    finally:
        process.terminate()
        process.wait()


def _serve(folder: Path, ready: int) -> None:
    from stringd.gate.audit import FILE_NAME, AuditLog
    from stringd.gate.decide import Event, KeyAnswer
    from stringd.gate.execute import Executor
    from stringd.gate.listener import Listener
    from stringd.gate.question import Question
    from stringd.gate.requests import RequestHandler
    from stringd.gate.server import Server
    from stringd.gate.watch import Watch

    class Agreeable:
        waiting = 0

        def turn(self, _watch: Watch, _caller: object = None) -> AbstractContextManager[None]:
            return nullcontext()

        def ask(self, _question: Question, _watch: Watch) -> KeyAnswer:
            return KeyAnswer(Event.YES, by="benchmark")

        def lend(self, _group: int) -> AbstractContextManager[None]:
            return nullcontext()

        def announce(self, _lines: object) -> None:
            return

    listener = Listener(folder / "gate.sock")
    handler = RequestHandler(
        Agreeable(), Executor(60, dict(os.environ)), AuditLog(folder / FILE_NAME), max_future=5
    )
    os.close(ready)
    Server(listener.socket, handler, lambda _: None).run()


if __name__ == "__main__":
    _serve(Path(sys.argv[1]), int(sys.argv[2]))

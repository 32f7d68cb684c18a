"""Floods: how long the event loop is busy, how `/health` answers, what memory stays.

Every flood comes from another process, and a third one asks `/health`, in turns with a bare server
that nobody floods: on a busy machine only the ratio of the two says something.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.daemon import HERE, listening, resident
from bench.floods import FLOODS
from bench.table import Row
from stringd.client.daemon import register
from stringd.client.http import DaemonConnection
from tests.support.daemon import free_port

TITLE = "Bounds"
SECONDS = float(os.environ.get("BENCH_FLOOD_SECONDS", "5"))
SETTLE_SECONDS = 30.0
"""How long a daemon may take to give memory back; idle connections are looked for every 5 s."""


def rows() -> Iterator[Row]:
    wanted = os.environ.get("BENCH_FLOODS", "")
    with probed_daemon() as (process, port), bare_server() as floor:
        idle = resident(process.pid)
        for name in FLOODS:
            if wanted in name:
                yield from flood_rows(name, process, (port, floor), idle)
    load = ", ".join(f"{each:.1f}" for each in os.getloadavg())
    yield Row("load of the machine, 1, 5 and 15 minutes", load, "–", None, "informative")


def flood_rows(
    name: str, process: "subprocess.Popen[str]", ports: tuple[int, int], idle: float
) -> Iterator[Row]:
    busiest(process)
    command = [sys.executable, "-m", "bench.floods", name, str(ports[0]), str(SECONDS)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as flood:
        assert flood.stdout is not None
        assert flood.stdout.readline() == "begun\n"
        ours, theirs = map(p99, zip(*health_times(ports, flood), strict=True))
    yield Row(
        f"{name}: /health p99",
        f"{ours * 1e3:.1f} ms",
        f"{theirs * 1e3:.1f} ms",
        ours / theirs,
        "≤ 50 ms",
    )
    yield Row(f"{name}: longest loop stall", f"{busiest(process):.0f} ms", "–", None, "≤ 100 ms")
    after = settled(process.pid, idle * 1.3)
    yield Row(
        f"{name}: memory after", f"{after:.0f} MB", f"{idle:.0f} MB idle", after / idle, "≤ 1.3"
    )


def health_times(
    ports: tuple[int, int], flood: "subprocess.Popen[str]"
) -> Iterator[tuple[float, float]]:
    """How long `/health` takes on a new connection each, ours and theirs, until the flood ends."""
    while True:
        yield health_time(ports[0]), health_time(ports[1])
        if flood.poll() is not None:
            return
        time.sleep(0.005)


def health_time(port: int) -> float:
    started = time.perf_counter()
    connection = DaemonConnection(port)
    connection.request("GET", "/health")
    connection.close()
    return time.perf_counter() - started


def p99(times: Iterable[float]) -> float:
    found = sorted(times)
    return found[int(len(found) * 0.99)]


@contextmanager
def bare_server() -> Iterator[int]:
    """A server that does nothing but answer, for what the machine itself adds."""
    port = free_port()
    with subprocess.Popen([sys.executable, str(HERE / "floor_exec.py"), str(port)]) as server:
        try:
            while not listening(port):
                assert server.poll() is None
                time.sleep(0.01)
            yield port
        finally:
            server.terminate()


def busiest(process: "subprocess.Popen[str]") -> float:
    """Milliseconds the loop was busy at a stretch, since the last time it was asked."""
    assert process.stdout is not None
    process.send_signal(signal.SIGUSR1)
    return float(process.stdout.readline())


def settled(pid: int, limit: float) -> float:
    """Resident megabytes, once they are below the limit or the time is over."""
    end = time.monotonic() + SETTLE_SECONDS
    while (now := resident(pid)) > limit and time.monotonic() < end:
        time.sleep(0.5)
    return now


@contextmanager
def probed_daemon() -> Iterator[tuple["subprocess.Popen[str]", int]]:
    port, data = free_port(), tempfile.mkdtemp()
    # 3 MB of text, so that answers do not fit into the kernel's buffers.
    Path(data, "large.md").write_text("# Large\n\n" + "text " * 600_000, "utf-8")
    environment = {**os.environ, "STRINGD_DATA_DIR": f"{data}/data", "STRINGD_PORT": str(port)}
    environment["STRINGD_MODEL_CATALOG"] = "off"
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.probed_daemon"],
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        connection = DaemonConnection(port)
        register(connection, "bench", data)
        # The rooms that load after the start belong to what is idle.
        time.sleep(3)
        connection.close()
        yield process, port
    finally:
        process.terminate()
        process.wait()
        shutil.rmtree(data, ignore_errors=True)

"""`/exec` against bare Node and a bare Python loop; start-up and memory.

Servers are pinned to one core and the load generator to another; contenders take turns, so that
a slow minute of the machine hits all of them, and the median round is reported. CPU time per
request is reported beside throughput: it hardly notices what else the machine is doing.
"""

import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from bench.table import Row
from stringd.client.daemon import register
from stringd.client.exec import json_object
from stringd.client.http import DaemonConnection
from tests.support.daemon import free_port

TITLE = "The daemon"
HERE = Path(__file__).parent
ROUNDS = int(os.environ.get("BENCH_ROUNDS", "3"))
SECONDS = int(os.environ.get("BENCH_SECONDS", "3"))


class Load(NamedTuple):
    rate: float
    p50_us: float
    cpu_us: float


class Contender(NamedTuple):
    name: str
    command: tuple[str, ...]


def rows() -> Iterator[Row]:
    yield from throughput_rows()
    yield from command_rows()
    yield from daemon_rows()


def contenders() -> list[Contender]:
    found = [
        Contender("stringd", (sys.executable, "-m", "stringd", "serve", "--port")),
        Contender("floor", (sys.executable, str(HERE / "floor_exec.py"))),
    ]
    if shutil.which("node"):
        found.append(Contender("node", ("node", str(HERE / "node_exec.js"))))
    return found


def throughput_rows() -> Iterator[Row]:
    if shutil.which("wrk") is None:
        yield Row("/exec throughput", "not measured", "wrk is missing", None, "≥ 1.3 × Node")
        return
    taken: dict[str, list[tuple[Load, Load]]] = {}
    for _ in range(ROUNDS):
        for contender in contenders():
            with serving(contender) as port:
                wrk(port, 8, 1)
                pair = wrk(port, 1, SECONDS), wrk(port, 32, SECONDS)
            taken.setdefault(contender.name, []).append(pair)
    ours = taken["stringd"]
    for peer, target in (("node", "≥ 1.3"), ("floor", "informative")):
        if peer not in taken:
            yield Row("/exec of /info, 32 connections", "–", "Node is missing", None, target)
            continue
        mine, theirs = (
            statistics.median(many.rate for _, many in taken[name]) for name in ("stringd", peer)
        )
        yield Row(
            f"/exec of /info, 32 connections, against {peer}",
            f"{mine:,.0f}/s",
            f"{theirs:,.0f}/s",
            mine / theirs,
            target,
        )
        spent, other_spent = (
            statistics.median(many.cpu_us for _, many in taken[name]) for name in ("stringd", peer)
        )
        yield Row(
            f"CPU time per request, {peer} against ours",
            f"{spent:.0f} µs",
            f"{other_spent:.0f} µs",
            other_spent / spent,
            target,
        )
        one = statistics.median(single.p50_us for single, _ in ours)
        other = statistics.median(single.p50_us for single, _ in taken[peer])
        yield Row(
            f"p50 at 1 connection, against {peer}",
            f"{one:.0f} µs",
            f"{other:.0f} µs",
            one / other,
            "≤ 1.2" if peer == "node" else "informative",
        )


def command_rows() -> Iterator[Row]:
    string = shutil.which("string", path=str(Path(sys.executable).parent)) or "string"
    peers = [("python3 -c pass", [sys.executable, "-c", "pass"], "≤ 2.5")]
    if shutil.which("node"):
        peers.append(("node -e 0", ["node", "-e", "0"], "≤ 1.5"))
    with serving(contenders()[0]) as port:
        env = {**os.environ, "STRINGD_PORT": str(port), "STRINGD_USER": "bench"}
        env["STRINGD_HOME"] = tempfile.mkdtemp()
        commands = [[string, "file:main", "/info"], *(command for _, command, _ in peers)]
        times: list[list[float]] = [[] for _ in commands]
        for _ in range(21):
            for index, command in enumerate(commands):
                times[index].append(wall_time(command, env))
    mine, *others = map(statistics.median, times)
    for (name, _, target), other in zip(peers, others, strict=True):
        yield Row(
            f"string one-shot, against {name}",
            f"{mine * 1e3:.0f} ms",
            f"{other * 1e3:.0f} ms",
            mine / other,
            target,
        )


def daemon_rows() -> Iterator[Row]:
    started = time.perf_counter()
    with serving(contenders()[0]) as port:
        ready = time.perf_counter() - started
        yield Row("time to ready", f"{ready * 1e3:.0f} ms", "–", None, "< 500 ms")
        pid = PIDS[port]
        idle = resident(pid)
        yield Row("resident memory, idle", f"{idle:.0f} MB", "–", None, "< 60 MB")
        connection = DaemonConnection(port)
        for number in range(1000):
            body = json_object(cmd="/info", topic=f"file:t{number}")
            connection.request("POST", "/exec", body, {"X-User-Id": "bench"})
        grown = resident(pid) - idle
        yield Row("memory of 1,000 sessions", f"{grown:.1f} MB", "–", None, "< 20 MB")


@contextmanager
def serving(contender: Contender) -> Iterator[int]:
    port = free_port()
    pinned = ["taskset", "-c", "0"] if shutil.which("taskset") else []
    data = tempfile.mkdtemp()
    process = subprocess.Popen(
        [*pinned, *contender.command, str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "STRINGD_DATA_DIR": data},
    )
    PIDS[port] = process.pid
    try:
        while not listening(port):
            assert process.poll() is None, f"{contender.name} did not start"
            time.sleep(0.002)
        if contender.name != "floor":
            register(DaemonConnection(port), "bench", data)
        yield port
    finally:
        process.terminate()
        process.wait()
        shutil.rmtree(data, ignore_errors=True)


PIDS: dict[int, int] = {}
"""Port → process of every server under test."""


def listening(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def wrk(port: int, connections: int, seconds: int) -> Load:
    before = cpu_seconds(PIDS[port])
    pinned = ["taskset", "-c", "1"] if shutil.which("taskset") else []
    output = subprocess.run(
        [
            *pinned,
            "wrk",
            "-t1",
            f"-c{connections}",
            f"-d{seconds}s",
            "--latency",
            "-s",
            str(HERE / "exec.lua"),
            f"http://127.0.0.1:{port}/exec",
        ],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    line = next(line for line in output.splitlines() if line.startswith("RESULT"))
    result = json.loads(line.removeprefix("RESULT "))
    assert result["errors"] == 0, line
    spent = (cpu_seconds(PIDS[port]) - before) / result["requests"] * 1e6
    return Load(result["requests"] / result["duration_us"] * 1e6, result["p50_us"], spent)


def wall_time(command: list[str], env: dict[str, str]) -> float:
    started = time.perf_counter()
    subprocess.run(command, env=env, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - started


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    line = next(line for line in status.splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1024

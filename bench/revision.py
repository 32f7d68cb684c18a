"""Runs beside an earlier revision of our own: by turns, on one machine, with the same libraries.

`BENCH_REVISION` names it; its sources come out of this repository. Each daemon has one core, and
processor time is compared beside the clock: it hardly notices what else the machine is doing.
"""

import json
import os
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

from bench.conversations import environment, scripted_model, written
from bench.daemon import HERE, PIDS, Contender, cpu_seconds, resident, serving
from bench.runs import (
    SUBSCRIBERS,
    Peer,
    burst,
    complete,
    follow,
    prepared,
    strategy,
    streaming,
    users,
)
from bench.table import Row

TITLE = "Runs beside an earlier revision"
REVISION = os.environ.get("BENCH_REVISION", "0889fad")
ROUNDS = int(os.environ.get("BENCH_ROUNDS", "3"))
RUNS, TOGETHER, CALLS, CHUNKS, PINGS = 500, 200, 5, 50_000, 20_000
MODEL_SECONDS = 0.02


class Cost(NamedTuple):
    """What some work took: by the clock, of the processor, and how much memory there was after."""

    seconds: float
    cpu: float
    megabytes: float


class Server(NamedTuple):
    """A daemon under test; `prefix` makes run ids its own."""

    port: int
    folder: Path
    prefix: str

    def cost(self, work: Callable[[], object]) -> Cost:
        pid = PIDS[self.port]
        cpu, began = cpu_seconds(pid), time.perf_counter()
        work()
        return Cost(time.perf_counter() - began, cpu_seconds(pid) - cpu, resident(pid))


def rows() -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as name, scripted_model(MODEL_SECONDS) as model:
        folder = Path(name)
        earlier = sources(folder)
        if earlier is None:
            yield Row("runs", "not measured", f"no revision {REVISION} here", None, "–")
            return
        given = {"OPENAI_BASE_URL": model, "OPENAI_API_KEY": "bench"}
        with environment(**given, STRINGD_MODEL_CATALOG="off"):
            taken = measured({"ours": HERE.parent / "src", "theirs": earlier}, folder)
    yield from compared(taken["ours"], taken["theirs"])
    load = ", ".join(f"{each:.1f}" for each in os.getloadavg())
    yield Row("load of the machine, 1, 5 and 15 minutes", load, "–", None, "informative")


def sources(folder: Path) -> Path | None:
    """The package as that revision has it; None where the repository does not have that."""
    command = ["git", "-C", str(HERE.parent), "archive", "--format=tar", REVISION, "src"]
    found = subprocess.run(command, capture_output=True, check=False)
    if found.returncode != 0:
        return None
    with tarfile.open(fileobj=BytesIO(found.stdout)) as archive:
        archive.extractall(folder, filter="data")
    subprocess.run([sys.executable, "-m", "compileall", "-q", str(folder)], check=True)
    return folder / "src"


def measured(revisions: dict[str, Path], folder: Path) -> dict[str, dict[str, list[Cost]]]:
    """Every cost of every revision, a list of rounds each."""
    found: dict[str, dict[str, list[Cost]]] = {name: {} for name in revisions}
    for number in range(ROUNDS):
        for name, source in revisions.items():
            program = ("env", f"PYTHONPATH={source}", sys.executable, "-m", "stringd", "serve")
            with serving(Contender(name, (*program, "--port"))) as port:
                server = Server(port, folder, f"{name}{number}")
                for what, work in WORKS.items():
                    found[name].setdefault(what, []).append(work(server))
    return found


def pings(server: Server) -> Cost:
    peer = Peer(server.port)
    burst(peer, 1000)
    cost = server.cost(lambda: burst(peer, PINGS))
    peer.close()
    return cost


def three_steps(server: Server) -> Cost:
    peer, path = Peer(server.port), strategy(server.folder, "three", *users(3))
    complete(peer, prepared(peer, path, f"{server.prefix}-warm", 20))
    cost = server.cost(lambda: complete(peer, prepared(peer, path, f"{server.prefix}-three", RUNS)))
    peer.close()
    return cost


def model_calls(server: Server) -> Cost:
    flow = {"name": "F", "type": "cycle", "cycles": CALLS, "steps": [{"agent": "a"}]}
    path = written(server.folder, "calls", flow, a={"model": "openai/bench"})
    peer = Peer(server.port)
    complete(peer, prepared(peer, path, f"{server.prefix}-call", 2))
    cost = server.cost(
        lambda: complete(peer, prepared(peer, path, f"{server.prefix}-calls", TOGETHER))
    )
    peer.close()
    return cost


def watched_by(number: int) -> Callable[[Server], Cost]:
    def work(server: Server) -> Cost:
        """The quickest of some runs, with so many watchers."""
        path = strategy(server.folder, "paced", streaming(200, 1))
        with ExitStack() as stack:
            peers = [Peer(server.port) for _ in range(number)]
            for peer in peers:
                stack.callback(peer.close)
            ids = prepared(peers[0], path, f"{server.prefix}-watched{number}", 5)
            return min(server.cost(partial(followed, peers, each)) for each in ids)

    return work


def chunks(server: Server) -> Cost:
    path = strategy(server.folder, "chunks", streaming(CHUNKS, 0))
    with ExitStack() as stack:
        peers = [Peer(server.port) for _ in range(4)]
        for peer in peers:
            stack.callback(peer.close)
        (run_id,) = prepared(peers[0], path, f"{server.prefix}-chunks", 1)
        follow(peers, run_id)
        return server.cost(lambda: read_all(peers, run_id))


def read_all(peers: list[Peer], run_id: str) -> None:
    """Start a run and let everybody read it to its end, side by side."""
    peers[0].send(type="start_run", runId=run_id, input="x")
    with ThreadPoolExecutor(len(peers)) as readers:
        list(readers.map(partial(read_to_end, run_id), peers))


def read_to_end(run_id: str, peer: Peer) -> None:
    """A reader that is told that it fell behind goes on where it was."""
    while (message := peer.until(b"strategy_completed", b"error")).startswith(b'{"type":"error"'):
        peer.send(type="subscribe", runId=run_id, fromSeq=json.loads(message)["nextSeq"])


def followed(peers: list[Peer], run_id: str) -> None:
    follow(peers, run_id)
    complete(peers[0], [run_id])
    for peer in peers[1:]:
        peer.until(b"strategy_completed")


WORKS: dict[str, Callable[[Server], Cost]] = {
    "pings": pings,
    "three": three_steps,
    "calls": model_calls,
    "one": watched_by(1),
    "many": watched_by(SUBSCRIBERS),
    "chunks": chunks,
}


def compared(ours: dict[str, list[Cost]], theirs: dict[str, list[Cost]]) -> Iterator[Row]:
    def row(what: str, target: str, show: Callable[[float], str], read: "Reading") -> Row:
        mine, other = read(ours), read(theirs)
        return Row(what, show(mine), show(other), mine / other, target)

    def rate(value: float) -> str:
        return f"{value:,.0f}/s"

    def ms(value: float) -> str:
        return f"{value * 1e3:.2f} ms"

    yield row("pings", "≥ 1.7", rate, lambda found: PINGS / best(found["pings"]).seconds)
    yield row("three-step runs", "≥ 1.8", rate, lambda found: RUNS / best(found["three"]).seconds)
    what = "processor time of"
    yield row(f"{what} a three-step run", "≤ 0.5", ms, lambda found: cpu(found["three"]) / RUNS)
    calls = TOGETHER * CALLS
    yield row(
        f"{what} a model call, {TOGETHER} runs of {CALLS} calls at {MODEL_SECONDS * 1e3:.0f} ms",
        "≤ 0.5",
        ms,
        lambda found: cpu(found["calls"]) / calls,
    )
    yield row(
        f"{what} a run with {SUBSCRIBERS} watchers",
        "≤ 0.45",
        ms,
        lambda found: cpu(found["many"]),
    )
    yield row(
        f"{what} {CHUNKS:,} chunks with four watchers",
        "≤ 0.8",
        ms,
        lambda found: cpu(found["chunks"]),
    )
    slowed = [best(found["many"]).seconds / best(found["one"]).seconds for found in (ours, theirs)]
    yield Row(
        f"a run slowed by {SUBSCRIBERS} watchers instead of 1",
        f"{slowed[0]:.2f} ×",
        f"{slowed[1]:.2f} ×",
        slowed[0],
        "≤ 1.3",
    )
    memory = [statistics.median(each.megabytes for each in f["chunks"]) for f in (ours, theirs)]
    yield Row(
        f"memory after {CHUNKS:,} chunks",
        f"{memory[0]:.0f} MB",
        f"{memory[1]:.0f} MB",
        memory[0] / memory[1],
        "≤ 110 MB",
    )


Reading = Callable[[dict[str, list[Cost]]], float]
"""One figure out of all costs of a revision."""


def best(rounds: list[Cost]) -> Cost:
    return min(rounds)


def cpu(rounds: list[Cost]) -> float:
    return min(each.cpu for each in rounds)

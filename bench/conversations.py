"""Long conversations, many runs and tools side by side, with a model that answers at once.

The model is another process, `python -m bench.conversations <port> <delay>`, which reads requests
without understanding them. The daemon says how long its event loop was busy at a stretch.
"""

import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from bench.bounds import busiest, probed_daemon
from bench.runs import Peer, complete, prepared, strategy, users
from bench.table import Row
from stringd.runs.models.directory import ProviderDirectory
from stringd.runs.models.port import ModelRequest, ModelSetup
from tests.support.daemon import free_port

TITLE = "Conversations"
CALLS, TOGETHER = 300, 200
FEW, MANY, MOST = 6, 600, 2000
_TEXT = "A sentence of an answer, as long as sentences of answers are. " * 4


def rows() -> Iterator[Row]:
    with scripted_model() as model, environment(OPENAI_BASE_URL=model, OPENAI_API_KEY="bench"):
        with probed_daemon() as (process, port), tempfile.TemporaryDirectory() as name:
            yield from start_rows(process, port, Path(name))
            yield from cycle_rows(process, port, Path(name))
            yield from tool_rows(process, port, Path(name))
        yield from size_rows(model)


def start_rows(process: "subprocess.Popen[str]", port: int, folder: Path) -> Iterator[Row]:
    path = strategy(folder, "three", *users(3))
    busiest(process)
    peer = Peer(port)
    complete(peer, prepared(peer, path, "first", 1))
    stall = busiest(process)
    yield Row("first run of a daemon: longest loop stall", f"{stall:.1f} ms", "–", None, "≤ 10 ms")
    ids = prepared(peer, path, "together", TOGETHER)
    preparing = busiest(process)
    complete(peer, ids)
    stall = max(preparing, busiest(process))
    what = f"{TOGETHER} runs prepared and started at once: longest loop stall"
    yield Row(what, f"{stall:.1f} ms", "–", None, "≤ 10 ms")
    peer.close()


def cycle_rows(process: "subprocess.Popen[str]", port: int, folder: Path) -> Iterator[Row]:
    flow = {"name": "F", "type": "cycle", "cycles": CALLS, "steps": [{"agent": "a"}]}
    path = written(folder, "cycle", flow, a={"model": "openai/bench"})
    once = {"name": "F", "type": "sequential", "steps": [{"agent": "a"}]}
    seconds(port, written(folder, "once", once, a={"model": "openai/bench"}), "warm")
    busiest(process)
    taken = seconds(port, path, "cycle")
    stall = busiest(process)
    yield Row(f"{CALLS} calls of a cycle, default memory", f"{taken:.2f} s", "–", None, "≤ 2.5 s")
    yield Row(f"{CALLS} calls: longest loop stall", f"{stall:.1f} ms", "–", None, "≤ 10 ms")


def tool_rows(process: "subprocess.Popen[str]", port: int, folder: Path) -> Iterator[Row]:
    calls = [{"name": "run_command", "args": {"command": "sleep 1"}}] * 4
    script = {"demo": {"script": [{"tools": calls}, "done"]}}
    agent = {"model": "demo/script", "providerOptions": script, "tools": ["run_command"]}
    flow = {"name": "F", "type": "sequential", "steps": [{"agent": "a"}]}
    path = written(folder, "tools", flow, a=agent)
    seconds(port, path, "warm-tools")
    busiest(process)
    taken = seconds(port, path, "tools")
    stall = busiest(process)
    yield Row("four `sleep 1` in one turn", f"{taken:.2f} s", "–", None, "≤ 1.3 s")
    yield Row("four `sleep 1`: longest loop stall", f"{stall:.1f} ms", "–", None, "≤ 10 ms")


def size_rows(model: str) -> Iterator[Row]:
    few, many, most = asyncio.run(by_size(model))
    for size, cost in ((MANY, many), (MOST, most)):
        yield Row(
            f"a model call at {size:,} messages over one at {FEW}, processor time",
            f"{cost:.2f} ms",
            f"{few:.2f} ms",
            cost / few,
            f"≤ 2 ms more (is {cost - few:.2f} ms)",
        )


async def by_size(url: str) -> list[float]:
    """Milliseconds of processor time for a call that adds two messages to so many."""
    environ = {"OPENAI_BASE_URL": url, "OPENAI_API_KEY": "bench"}
    with tempfile.TemporaryDirectory() as folder:
        directory = ProviderDirectory(Path(folder), environ=environ)
        model = directory.model(
            "openai/bench", lambda _, model_id: ModelSetup(model_id, "bench", {}, Path(folder))
        )
        talks: dict[int, tuple[list[dict[str, Any]], dict[str, Any]]] = {
            size: ([message(n) for n in range(size)], {}) for size in (FEW, MANY, MOST)
        }
        costs: dict[int, list[float]] = {size: [] for size in talks}
        for turn in range(40):
            for size, (talk, kept) in talks.items():
                began = time.process_time()
                request = ModelRequest("bench", "Be brief.", list(talk), kept=kept)
                async for _ in model.stream(request):
                    pass
                if turn >= 5:
                    costs[size].append((time.process_time() - began) * 1000)
                talk += [message(1), message(0)]
        await directory.close()
    return [statistics.median(costs[size]) for size in (FEW, MANY, MOST)]


def message(number: int) -> dict[str, Any]:
    return {"role": "assistant" if number % 2 else "user", "content": f"{number} {_TEXT}"}


def written(folder: Path, name: str, flow: dict[str, Any], **agents: Any) -> str:
    path = folder / f"{name}.yaml"
    source = {"name": name, "version": "1", "agents": agents, "flow": flow}
    path.write_text(yaml.safe_dump(source), "utf-8")
    return str(path)


def seconds(port: int, path: str, run_id: str) -> float:
    """How long a run takes."""
    peer = Peer(port)
    peer.send(type="prepare_run", runId=run_id, strategyPath=path)
    peer.until(b"run_prepared")
    began = time.perf_counter()
    peer.send(type="start_run", runId=run_id, input="go")
    ended = peer.until(b"strategy_completed", b"strategy_error")
    taken = time.perf_counter() - began
    assert ended.startswith(b'{"type":"strategy_completed"'), ended
    peer.close()
    return taken


@contextmanager
def environment(**values: str) -> Iterator[None]:
    before = dict(os.environ)
    os.environ.update(values)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


@contextmanager
def scripted_model(delay: float = 0) -> Iterator[str]:
    """The address of a server that gives the same answer to everything, so many seconds later."""
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.conversations", str(port), str(delay)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    process.stdout.readline()
    try:
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()


def answer() -> bytes:
    from tests.runs.models.servers import openai_text

    body = b"".join(openai_text(*_TEXT.split(". ")).chunks)
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: %d\r\n\r\n"
    return head % len(body) + body


async def serve(port: int, delay: float) -> None:
    reply = answer()

    async def client(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                size = int(head.partition(b"content-length:")[2].split(b"\r\n")[0])
                await reader.readexactly(size)
                if delay:
                    await asyncio.sleep(delay)
                writer.write(reply)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(client, "127.0.0.1", port, limit=1 << 24)
    print("ready", flush=True)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    import uvloop

    uvloop.run(serve(int(sys.argv[1]), float(sys.argv[2])))

"""Runs against the floors they stand on: a bare WebSocket server, and the disk.

The daemon is the real one in its own process; the client is a plain socket that parses nothing
it does not need. The floor server is `python -m bench.runs <port>`: the `websockets` library
answering every message with a pong, or sending one burst to everyone connected.
"""

import asyncio
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import yaml

from bench.table import Row
from tests.support.daemon import Daemon, free_port

TITLE = "Runs"
PONG = b'{"type":"pong","ts":"2026-01-01T00:00:00.000Z"}'
SUBSCRIBERS = 100
CHUNKS = 200


def rows() -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as name, Daemon(Path(name)) as daemon, floor() as port:
        folder = Path(name)
        yield from ping_rows(daemon.port, port)
        yield from run_rows(daemon, folder)
        yield from fan_out_rows(daemon, folder, port)
        yield from stop_rows(daemon, folder)

    with tempfile.TemporaryDirectory() as name, Daemon(Path(name)) as daemon:
        yield from memory_rows(daemon, Path(name))


class Peer:
    """A WebSocket client on a bare socket."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), 60)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.sendall(
            b"GET /ws HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nUpgrade: websocket\r\n"
            b"Connection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
            b"Sec-WebSocket-Version: 13\r\n\r\n" % port
        )
        self._buffer = b""
        while b"\r\n\r\n" not in self._buffer:
            self._buffer += self.socket.recv(4096)
        self._buffer = self._buffer.partition(b"\r\n\r\n")[2]
        # Frames before this place have been taken.
        self._at = 0

    def send(self, **message: Any) -> None:
        self.socket.sendall(masked(json.dumps(message).encode()))

    def receive(self) -> bytes:
        while True:
            frame = self._frame()
            if frame is not None:
                return frame
            self._buffer = self._buffer[self._at :] + self.socket.recv(1 << 16)
            self._at = 0

    def until(self, *kinds: bytes) -> bytes:
        """The next message of one of these types."""
        heads = tuple(b'{"type":"%b"' % kind for kind in kinds)
        while not (message := self.receive()).startswith(heads):
            pass
        return message

    def close(self) -> None:
        self.socket.close()

    def _frame(self) -> bytes | None:
        data, begin = self._buffer, self._at
        if len(data) < begin + 2:
            return None
        size, at = data[begin + 1], begin + 2
        if size >= 126:
            at = begin + (4 if size == 126 else 10)
            size = int.from_bytes(data[begin + 2 : at], "big")
        if len(data) < at + size:
            return None
        self._at = at + size
        return data[at : at + size] if data[begin] == 0x81 else self._frame()


def masked(payload: bytes) -> bytes:
    size = len(payload)
    head = bytes([0x81, 0x80 | size]) if size < 126 else b"\x81\xfe" + size.to_bytes(2, "big")
    return head + bytes(4) + payload


@contextmanager
def floor() -> Iterator[int]:
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.runs", str(port)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    process.stdout.readline()
    try:
        yield port
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()


def ping_rows(ours: int, theirs: int) -> Iterator[Row]:
    mine, other = Peer(ours), Peer(theirs)
    one = [(trips(mine, 2000), trips(other, 2000)) for _ in range(3)]
    a, b = (statistics.median(pair[side] for pair in one) for side in (0, 1))
    yield Row("ping to pong, one at a time", f"{a:,.0f}/s", f"{b:,.0f}/s", a / b, "≥ 1")
    many = [(burst(mine, 5000), burst(other, 5000)) for _ in range(3)]
    a, b = (statistics.median(pair[side] for pair in many) for side in (0, 1))
    yield Row("ping to pong, pipelined", f"{a:,.0f}/s", f"{b:,.0f}/s", a / b, "≥ 1")
    mine.close()
    other.close()


def trips(peer: Peer, number: int) -> float:
    frame, began = masked(b'{"type":"ping"}'), time.perf_counter()
    for _ in range(number):
        peer.socket.sendall(frame)
        peer.receive()
    return number / (time.perf_counter() - began)


def burst(peer: Peer, number: int) -> float:
    frame, began = masked(b'{"type":"ping"}'), time.perf_counter()
    for _ in range(number // 100):
        peer.socket.sendall(frame * 100)
        for _ in range(100):
            peer.receive()
    return number / (time.perf_counter() - began)


def strategy(folder: Path, name: str, *agents: dict[str, Any]) -> str:
    named = {f"a{number}": agent for number, agent in enumerate(agents)}
    flow = {"name": "F", "type": "sequential", "steps": [{"agent": each} for each in named]}
    source = {"name": name, "version": "1", "agents": named, "flow": flow}
    path = folder / f"{name}.yaml"
    path.write_text(yaml.safe_dump(source), "utf-8")
    return str(path)


def users(number: int) -> list[dict[str, Any]]:
    return [{"type": "user"}] * number


def streaming(chunks: int, delay_ms: float) -> dict[str, Any]:
    script = [{"chunks": ["word "] * chunks, "delayMs": delay_ms}]
    return {"model": "demo/x", "providerOptions": {"demo": {"script": script}}}


def prepared(peer: Peer, path: str, prefix: str, number: int) -> list[str]:
    ids = [f"{prefix}-{each}" for each in range(number)]
    for run_id in ids:
        peer.send(type="prepare_run", runId=run_id, strategyPath=path)
    for _ in ids:
        peer.until(b"run_prepared")
    return ids


def complete(peer: Peer, ids: list[str]) -> float:
    """Seconds from the first start to the last completion."""
    frames = [
        masked(json.dumps({"type": "start_run", "runId": run_id, "input": "x"}).encode())
        for run_id in ids
    ]
    began = time.perf_counter()
    peer.socket.sendall(b"".join(frames))
    for _ in ids:
        peer.until(b"strategy_completed")
    return time.perf_counter() - began


def run_rows(daemon: Daemon, folder: Path) -> Iterator[Row]:
    peer, path = Peer(daemon.port), strategy(folder, "three", *users(3))
    complete(peer, prepared(peer, path, "warm", 20))
    runs, floors = [], []
    # By turns, so that a busy moment of the disk hits both.
    for number, run_id in enumerate(prepared(peer, path, "one", 50)):
        runs.append(complete(peer, [run_id]))
        timeline = daemon.data_dir / "runs" / f"{run_id}.jsonl"
        floors.append(disk_floor(timeline, folder / f"floor-{number}"))
    one, disk = statistics.median(runs), statistics.median(floors)
    yield Row(
        "a run of three steps, alone, against only writing and syncing its timeline, line by line",
        f"{1 / one:,.0f}/s",
        f"{1 / disk:,.0f}/s",
        disk / one,
        "≥ 0.5",
    )
    hundred = min(complete(peer, prepared(peer, path, f"h{n}", 100)) for n in range(3))
    thousand = min(complete(peer, prepared(peer, path, f"t{n}", 1000)) for n in range(2))
    yield Row(
        "runs of three steps, 1,000 at once against 100 at once",
        f"{1000 / thousand:,.0f}/s",
        f"{100 / hundred:,.0f}/s",
        (1000 / thousand) / (100 / hundred),
        "≥ 0.8 (linear)",
    )
    peer.close()


def disk_floor(timeline: Path, copy: Path) -> float:
    """Seconds for the same lines, each appended and synced, as the format asks."""
    lines = timeline.read_bytes().splitlines(keepends=True)
    began = time.perf_counter()
    fd = os.open(copy, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for line in lines:
        os.write(fd, line)
        os.fdatasync(fd)
    os.close(fd)
    return time.perf_counter() - began


def fan_out_rows(daemon: Daemon, folder: Path, floor_port: int) -> Iterator[Row]:
    fast = strategy(folder, "fast", streaming(CHUNKS, 0))
    paced = strategy(folder, "paced", streaming(50, 10))
    with ExitStack() as stack:
        peers = [Peer(daemon.port) for _ in range(SUBSCRIBERS)]
        for peer in peers:
            stack.callback(peer.close)
        lead = peers[0]
        alone = min(complete(lead, [each]) for each in prepared(lead, paced, "p1", 3))
        rate = max(watched(peers, each) for each in prepared(lead, fast, "f", 3))
        theirs = max(floor_rate(floor_port) for _ in range(3))
        yield Row(
            f"events to {SUBSCRIBERS} subscribers",
            f"{rate:,.0f}/s",
            f"{theirs:,.0f}/s",
            rate / theirs,
            "≥ 0.3 of a bare broadcast that keeps and numbers nothing",
        )
        ids = prepared(lead, paced, "p100", 3)
        together = min(len_of(peers, each) for each in ids)
        yield Row(
            f"a streaming run, {SUBSCRIBERS} subscribers against 1",
            f"{together * 1000:.0f} ms",
            f"{alone * 1000:.0f} ms",
            together / alone,
            "≤ 1.1",
        )


def follow(peers: list[Peer], run_id: str) -> None:
    for peer in peers[1:]:
        peer.send(type="subscribe", runId=run_id)
        peer.send(type="ping")
        peer.until(b"pong")


def watched(peers: list[Peer], run_id: str) -> float:
    """Events a second over all subscribers, until the last has the last one."""
    follow(peers, run_id)
    seconds = complete(peers[0], [run_id])
    began = time.perf_counter()
    for peer in peers[1:]:
        peer.until(b"strategy_completed")
    return (CHUNKS + 7) * len(peers) / (seconds + time.perf_counter() - began)


def len_of(peers: list[Peer], run_id: str) -> float:
    follow(peers, run_id)
    seconds = complete(peers[0], [run_id])
    for peer in peers[1:]:
        peer.until(b"strategy_completed")
    return seconds


def floor_rate(port: int) -> float:
    peers = [Peer(port) for _ in range(SUBSCRIBERS)]
    began = time.perf_counter()
    peers[0].socket.sendall(masked(b"burst"))
    for peer in peers:
        for _ in range(CHUNKS + 7):
            peer.receive()
    rate = (CHUNKS + 7) * len(peers) / (time.perf_counter() - began)
    for peer in peers:
        peer.close()
    return rate


def stop_rows(daemon: Daemon, folder: Path) -> Iterator[Row]:
    peer = Peer(daemon.port)
    path = strategy(folder, "slow", streaming(1000, 5))
    times = []
    for run_id in prepared(peer, path, "stop", 20):
        peer.send(type="start_run", runId=run_id)
        peer.until(b"agent_streaming")
        began = time.perf_counter()
        peer.send(type="stop_run", runId=run_id)
        peer.until(b"strategy_error")
        peer.send(type="prepare_run", runId=run_id)
        peer.until(b"run_prepared")
        times.append(time.perf_counter() - began)
        peer.send(type="stop_run", runId=run_id)
        peer.until(b"strategy_error")
    yield Row("stop mid-stream until settled, slowest of 20", ms(max(times)), "–", None, "< 200 ms")
    peer.close()


def ms(seconds: float) -> str:
    return f"{seconds * 1000:.1f} ms"


def memory_rows(daemon: Daemon, folder: Path) -> Iterator[Row]:
    assert daemon.process is not None
    pid, peer = daemon.process.pid, Peer(daemon.port)
    path = strategy(folder, "idle", *users(3))
    complete(peer, prepared(peer, path, "warm", 10))
    before = resident_kib(pid)
    ids = prepared(peer, path, "idle", 1000)
    idle = (resident_kib(pid) - before) / 1000
    yield Row("memory of an idle prepared run", f"{idle:.1f} KiB", "–", None, "≤ 40 KiB")
    complete(peer, ids)
    settled = resident_kib(pid)
    for turn in range(2):
        complete(peer, prepared(peer, path, f"m{turn}", 1000))
    grown = (resident_kib(pid) - settled) / 2000
    yield Row("memory a finished run leaves behind", f"{grown:.2f} KiB", "–", None, "≤ 3 KiB")
    peer.close()


def resident_kib(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text("ascii").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    return 0


async def serve_floor(port: int) -> None:
    from websockets.asyncio.server import ServerConnection, broadcast, serve
    from websockets.exceptions import ConnectionClosed

    everyone: set[ServerConnection] = set()
    event = json.dumps({"type": "agent_streaming", "filler": "x" * 180})

    async def answer(connection: ServerConnection) -> None:
        everyone.add(connection)
        with suppress(ConnectionClosed):
            async for message in connection:
                if message == "burst":
                    for _ in range(CHUNKS + 7):
                        broadcast(everyone, event)
                        await asyncio.sleep(0)
                else:
                    await connection.send(PONG, text=True)
        everyone.discard(connection)

    async with serve(answer, "127.0.0.1", port, compression=None) as server:
        print("ready", flush=True)
        await server.serve_forever()


if __name__ == "__main__":
    import uvloop

    uvloop.run(serve_floor(int(sys.argv[1])))

"""What an action costs on top of the request it makes, and whether topics act side by side.

The peer is the same HTTP request made by a bare client in this process. The daemon, the client
and the server share the machine; both sides take turns, so a slow moment hits both.
"""

import asyncio
import json
import statistics
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx2
import uvloop

from bench.table import Row
from stringd.client.exec import execute, json_object
from stringd.client.http import DaemonConnection
from tests.support.daemon import Daemon

TITLE = "Actions"
CALLS = 400
BATCH = 20
TOPICS = 50
DELAY = 0.2
_PAGE = """```act.get
GET {url}/item?id={{id}} -H "X-Key: $KEY"
  id: string (required)
```
```act.get.response
{{name}} = {{Response.body.name}}
Item {{id}}: {{Response.body.name}}
for: t in Response.body.tags
- {{t}}
end:
```
```act.slow
GET {url}/slow
```
```act.cli
CLI true
```
"""
_BODY = json.dumps({"name": "tea", "tags": ["hot", "green"]}).encode()


def rows() -> Iterator[Row]:
    with (
        tempfile.TemporaryDirectory() as directory,
        serving() as url,
        Daemon(Path(directory)) as daemon,
    ):
        (daemon.home / "page.md").write_text(_PAGE.format(url=url), encoding="utf-8")
        connection = DaemonConnection(daemon.port)
        body = json_object(id="bench", home=str(daemon.home))
        connection.request("POST", "/users", body)
        execute(connection, "bench", "file:main", "/open page.md", None)
        execute(connection, "bench", "file:main", '/set $KEY = "k-12345678"', None)
        yield overhead(connection, url)
        yield command(connection)
        yield side_by_side(daemon.port)


def overhead(connection: DaemonConnection, url: str) -> Row:
    """What is left of an action after its own request and the command around it."""
    times: dict[str, list[float]] = {"action": [], "request": [], "command": []}
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        client = httpx2.AsyncClient(trust_env=False)
        for _ in range(CALLS // BATCH):
            times["request"] += runner.run(bare_requests(client, f"{url}/item?id=7"))
            for _ in range(BATCH):
                times["action"].append(timed(lambda: act(connection, "/act.get 7")))
                times["command"].append(timed(lambda: act(connection, "/help")))
        runner.run(client.aclose())
    action, request_, command_ = (
        statistics.median(times[name]) for name in ("action", "request", "command")
    )
    return Row(
        f"HTTP action through /exec, p50: {(action - request_ - command_) * 1e3:.2f} ms on top",
        f"{action * 1e3:.2f} ms",
        f"bare request {request_ * 1e3:.2f} ms, /exec alone {command_ * 1e3:.2f} ms",
        action / (request_ + command_),
        "≤ 1 ms on top",
    )


def command(connection: DaemonConnection) -> Row:
    mine, floor = [], []
    for _ in range(40):
        mine.append(timed(lambda: act(connection, "/act.cli")))
        floor.append(timed(lambda: subprocess.run(["/bin/bash", "-c", "true"], check=True)))
    ours, peer = statistics.median(mine), statistics.median(floor)
    return Row(
        "CLI action against subprocess.run, p50",
        f"{ours * 1e3:.1f} ms",
        f"{peer * 1e3:.1f} ms",
        ours / peer,
        "–",
    )


def side_by_side(port: int) -> Row:
    def one(number: int) -> None:
        connection = DaemonConnection(port)
        topic = f"file:t{number}"
        execute(connection, "bench", topic, "/open page.md", None)
        assert execute(connection, "bench", topic, "/act.slow", None).ok
        connection.close()

    started = time.perf_counter()
    with ThreadPoolExecutor(TOPICS) as pool:
        list(pool.map(one, range(TOPICS)))
    took = time.perf_counter() - started
    return Row(
        f"{TOPICS} topics, one {DELAY * 1e3:.0f} ms request each",
        f"{took * 1e3:.0f} ms",
        f"one after the other {TOPICS * DELAY * 1e3:.0f} ms",
        took / (TOPICS * DELAY),
        "≤ 0.2",
    )


def act(connection: DaemonConnection, text: str) -> None:
    reply = execute(connection, "bench", "file:main", text, None)
    assert reply.ok, reply.content


async def bare_requests(client: httpx2.AsyncClient, url: str) -> list[float]:
    """What the action does, without the action: the same client library, the same server."""
    times = []
    for _ in range(BATCH):
        started = time.perf_counter()
        answer = await client.get(url, headers={"X-Key": "k-12345678"})
        assert answer.json()["name"] == "tea"
        times.append(time.perf_counter() - started)
    return times


def timed(run: Callable[[], object]) -> float:
    started = time.perf_counter()
    run()
    return time.perf_counter() - started


@contextmanager
def serving() -> Iterator[str]:
    """A keep-alive server in a loop of its own; `/slow` waits before it answers."""
    ready: list[int] = []
    started = threading.Event()
    loop = asyncio.new_event_loop()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                if b" /slow" in head:
                    await asyncio.sleep(DELAY)
                writer.write(
                    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                    b"Content-Length: %d\r\n\r\n%b" % (len(_BODY), _BODY)
                )
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async def main() -> None:
        server = await asyncio.start_server(handle, "127.0.0.1", 0)
        ready.append(server.sockets[0].getsockname()[1])
        started.set()

    def run() -> None:
        loop.run_until_complete(main())
        loop.run_forever()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    started.wait()
    try:
        yield f"http://127.0.0.1:{ready[0]}"
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()

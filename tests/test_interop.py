"""Other programs on both ends of our wires: curl, a browser's WebSocket, a foreign daemon."""

import asyncio
import base64
import json
import os
import shutil
import socket
import struct
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.server import ServerConnection, serve

from stringd.client import AsyncRuns, RequestFailedError
from stringd.wire.runs import messages as m
from tests.support.daemon import WAIT_SECONDS, Daemon, free_port

HELLO = Path(__file__).parents[1] / "src/stringd/runs/bundled/hello.yaml"


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with Daemon(tmp_path_factory.mktemp("daemon")) as running:
        yield running


def curl(daemon: Daemon, path: str, *arguments: str) -> str:
    done = subprocess.run(
        ["curl", "-sS", "--fail-with-body", *arguments, f"http://127.0.0.1:{daemon.port}{path}"],
        capture_output=True,
        text=True,
        timeout=WAIT_SECONDS,
        check=True,
    )
    return done.stdout


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_curl_is_a_client_of_every_http_endpoint(daemon: Daemon) -> None:
    as_json = ("-H", "Content-Type: application/json")
    user = ("-H", "X-User-Id: curl")
    assert json.loads(curl(daemon, "/health"))["ok"] is True
    home = json.dumps({"id": "curl", "home": str(daemon.home)})
    assert json.loads(curl(daemon, "/users", *as_json, "-d", home))["user_id"] == "curl"
    command = json.dumps({"cmd": "echo from curl", "topic": "bash:curl"})
    stream = curl(daemon, "/exec", "-N", *as_json, *user, "-d", command)
    assert [line for line in stream.splitlines() if line.startswith("event: ")] == [
        "event: head",
        "event: content",
        "event: done",
    ]
    assert "from curl" in stream
    blocks = "<𝒞=string:bash:curl>echo again</𝒞>"
    text = ("-H", "Content-Type: text/plain", "--data-binary", blocks)
    assert "again" in curl(daemon, "/chanflow", *user, *text)
    message = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
    accept = ("-H", "Accept: application/json, text/event-stream")
    assert '"name":"string"' in curl(daemon, "/mcp", *as_json, *accept, "-d", message)


class BareWebSocket:
    """What a browser sends, written out: handshake, masked text frames, nothing else."""

    def __init__(self, port: int, origin: str) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=WAIT_SECONDS)
        key = base64.b64encode(os.urandom(16)).decode()
        lines = [
            "GET /ws HTTP/1.1",
            f"Host: 127.0.0.1:{port}",
            f"Origin: {origin}",
            "Connection: Upgrade",
            "Upgrade: websocket",
            "Sec-WebSocket-Version: 13",
            f"Sec-WebSocket-Key: {key}",
            "Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits",
        ]
        self._socket.sendall("\r\n".join([*lines, "", ""]).encode())
        self._reader = self._socket.makefile("rb")
        self.status = int(self._reader.readline().split()[1])
        while self._reader.readline() not in (b"\r\n", b""):
            pass

    def close(self) -> None:
        self._reader.close()
        self._socket.close()

    def send(self, message: dict[str, Any]) -> None:
        data = json.dumps(message).encode()
        mask = os.urandom(4)
        assert len(data) < 65536
        size = struct.pack("!BBH", 0x81, 0x80 | 126, len(data))
        masked = bytes(byte ^ mask[i % 4] for i, byte in enumerate(data))
        self._socket.sendall(size + mask + masked)

    def receive(self) -> dict[str, Any]:
        first, size = self._reader.read(2)
        assert first == 0x81
        if size == 126:
            (size,) = struct.unpack("!H", self._reader.read(2))
        elif size == 127:
            (size,) = struct.unpack("!Q", self._reader.read(8))
        message: dict[str, Any] = json.loads(self._reader.read(size))
        return message


def test_a_websocket_written_by_hand_follows_a_run(daemon: Daemon) -> None:
    page = BareWebSocket(daemon.port, f"http://localhost:{daemon.port}")
    try:
        assert page.status == 101
        page.send({"type": "prepare_run", "runId": "by-hand", "strategyPath": str(HELLO)})
        assert page.receive()["type"] == "run_prepared"
        page.send({"type": "start_run", "runId": "by-hand", "input": "a browser"})
        message = page.receive()
        while message["type"] != "strategy_completed":
            message = page.receive()
        assert "a browser" in message["result"]
    finally:
        page.close()


def test_a_page_of_another_origin_gets_no_websocket(daemon: Daemon) -> None:
    page = BareWebSocket(daemon.port, "https://evil.example")
    page.close()
    assert page.status == 403


@pytest.mark.skipif(shutil.which("node") is None, reason="Node.js is not installed")
def test_the_websocket_of_browsers_follows_a_run(daemon: Daemon) -> None:
    """Node.js has the browsers' WebSocket class, and sends what it sends."""
    script = """
      const socket = new WebSocket(process.argv[1]);
      const run = {runId: "node"};
      const send = (message) => socket.send(JSON.stringify({...run, ...message}));
      socket.onopen = () => send({type: "prepare_run", strategyPath: process.argv[2]});
      socket.onmessage = ({data}) => {
        const message = JSON.parse(data);
        if (message.type === "run_prepared") send({type: "start_run", input: "Node"});
        if (message.type === "strategy_completed") { console.log(message.result); socket.close(); }
      };
      socket.onclose = () => process.exit(0);
    """
    done = subprocess.run(
        [
            "node",
            "--experimental-websocket",
            "-e",
            script,
            f"ws://127.0.0.1:{daemon.port}/ws",
            HELLO,
        ],
        capture_output=True,
        text=True,
        timeout=WAIT_SECONDS,
        check=False,
    )
    if "bad option" in done.stderr:
        pytest.skip("this Node.js has no WebSocket")
    assert "You said: Node" in done.stdout, done.stderr


@asynccontextmanager
async def foreign_runs() -> AsyncIterator[int]:
    """A daemon that speaks the protocol page to the letter and nothing of ours: no seq, and
    no requestId on what it broadcasts."""

    async def speak(connection: ServerConnection) -> None:
        async for frame in connection:
            asked = json.loads(frame)
            for answer in foreign_answers(asked):
                await connection.send(json.dumps({"ts": "2026-01-01T00:00:00.000Z", **answer}))

    port = free_port()
    async with serve(speak, "127.0.0.1", port):
        yield port


def foreign_answers(asked: dict[str, Any]) -> list[dict[str, Any]]:
    echo = {"requestId": asked["requestId"]} if "requestId" in asked else {}
    run = {"runId": asked.get("runId", "r")}
    tree = {"flowTree": {"name": "F", "type": "sequential", "steps": []}}
    match asked["type"]:
        case "ping":
            return [{"type": "pong", **echo}]
        case "prepare_run" if asked.get("strategyPath") == "none.yaml":
            return [{"type": "error", "code": "PREPARE_FAILED", "message": "no", **echo}]
        case "prepare_run":
            history: dict[str, Any] = {"records": [], "retentionEvents": [], "inputs": []}
            named = {"strategyName": "s", "agents": ["a"], "conversation": history}
            return [{"type": "run_prepared", **run, **named, **tree, "mcpServers": [], **echo}]
        case "start_run":
            usage = {"promptTokens": 1, "completionTokens": 1}
            started = {"type": "strategy_started", **run, "strategyName": "s", "agents": ["a"]}
            asks = {"type": "request_input", **run, "agentName": "a"}
            ended = {"type": "strategy_completed", **run, "result": "done", "usage": usage}
            return [{**started, **tree}, asks, {"type": "from_the_future", **run}, ended]
    return []


@pytest.mark.anyio
async def test_our_client_follows_runs_of_a_foreign_daemon() -> None:
    async with foreign_runs() as port, AsyncRuns(port) as runs, asyncio.timeout(WAIT_SECONDS):
        run = await runs.run("s.yaml", "x")
        events = [event async for event in run]
        assert [type(event) for event in events] == [
            m.StrategyStarted,
            m.RequestInput,
            m.StrategyCompleted,
        ]
        with pytest.raises(RequestFailedError):
            await runs.prepare("none.yaml")

"""`/ws` of the real daemon: the upgrade, frames of every kind, shutdown."""

import asyncio
import http.client
import json
import resource
import signal
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import yaml
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.typing import Origin

from stringd.server import ws
from stringd.server.ws import SHARED_BYTES, text_frames
from tests.requirements import proves
from tests.runs.support import Json, Watcher, scripted, sequential, serving, strategy
from tests.support.daemon import WAIT_SECONDS, Daemon, free_port
from tests.wire.test_runs import BAD

pytestmark = pytest.mark.anyio

SLOW = strategy(sequential("a"), a=scripted({"chunks": ["x"], "delayMs": 60_000}))


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    runs_port = free_port()
    with Daemon(tmp_path_factory.mktemp("ws"), "--runs-port", str(runs_port)) as running:
        running.environment["RUNS_PORT"] = str(runs_port)
        yield running


@pytest.fixture
async def socket_(daemon: Daemon) -> AsyncIterator[ClientConnection]:
    async with connect(url(daemon.port), max_size=None, proxy=None) as connection:
        yield connection


def url(port: int) -> str:
    return f"ws://127.0.0.1:{port}/ws"


def health(port: int) -> Json:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=WAIT_SECONDS)
    connection.request("GET", "/health")
    body: Json = json.loads(connection.getresponse().read())
    connection.close()
    return body


@proves("RUN-02", "RUN-03")
@pytest.mark.parametrize(("frame", "code", "text"), BAD)
async def test_bad_frames_are_answered_and_the_connection_lives(
    socket_: ClientConnection, frame: str | bytes, code: str, text: str
) -> None:
    watcher = Watcher(socket_)
    await socket_.send(frame)
    answer = await watcher.receive()
    assert (answer["type"], answer["code"]) == ("error", code)
    assert text in answer["message"]
    assert (await watcher.ask("ping"))["type"] == "pong"


async def test_binary_and_fragmented_frames_are_read_like_text(socket_: ClientConnection) -> None:
    watcher = Watcher(socket_)
    await socket_.send(b'{"type":"ping","requestId":"b"}')
    assert (await watcher.receive())["requestId"] == "b"
    await socket_.send(['{"type":"pi', 'ng","reques', 'tId":"f"}'])
    assert (await watcher.receive())["requestId"] == "f"
    await socket_.ping()


async def test_nothing_is_said_before_the_client_speaks(socket_: ClientConnection) -> None:
    watcher = Watcher(socket_)
    assert (await watcher.ask("ping"))["type"] == "pong"
    assert len(watcher.seen) == 1


async def test_text_that_is_not_utf8_closes_with_1007(daemon: Daemon) -> None:
    async with connect(url(daemon.port), proxy=None) as connection:
        await connection.send(b"\xff\xfe", text=True)
        with pytest.raises(ConnectionClosed) as closed:
            await connection.recv()
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1007


async def test_a_message_over_sixteen_mebibytes_closes_with_1009(daemon: Daemon) -> None:
    async with connect(url(daemon.port), proxy=None) as connection:
        with suppress(ConnectionClosed):
            await connection.send("x" * (16 * 1024 * 1024 + 1))
        with pytest.raises(ConnectionClosed) as closed:
            await connection.recv()
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1009


@proves("RUN-27")
@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "https://localhost.evil.example"]
)
async def test_web_pages_are_refused_the_upgrade(daemon: Daemon, origin: str) -> None:
    with pytest.raises(InvalidStatus) as refused:
        await connect(url(daemon.port), origin=Origin(origin), proxy=None)
    assert refused.value.response.status_code == 403


@proves("RUN-27")
async def test_a_foreign_host_name_is_refused_and_a_local_page_is_not(daemon: Daemon) -> None:
    with pytest.raises(InvalidStatus) as refused:
        await connect(f"ws://rebound.example:{daemon.port}/ws", host="127.0.0.1", proxy=None)
    assert refused.value.response.status_code == 403
    local = Origin(f"http://localhost:{daemon.port}")
    async with connect(url(daemon.port), origin=local, proxy=None) as connection:
        assert (await Watcher(connection).ask("ping"))["type"] == "pong"


@pytest.mark.parametrize(
    ("method", "headers"),
    [
        ("GET", {}),
        ("POST", {}),
        ("GET", {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "8"}),
        ("GET", {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13"}),
    ],
)
async def test_what_is_no_upgrade_is_told_so(
    daemon: Daemon, method: str, headers: dict[str, str]
) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", daemon.port, timeout=WAIT_SECONDS)
    connection.request(method, "/ws", headers=headers)
    response = connection.getresponse()
    assert (response.status, response.read()) == (400, b"WebSocket upgrade failed")
    connection.close()


async def test_health_counts_clients_and_runs(
    daemon: Daemon, socket_: ClientConnection, tmp_path: Path
) -> None:
    path = tmp_path / "slow.yaml"
    path.write_text(yaml.safe_dump(SLOW), "utf-8")
    watcher = Watcher(socket_)
    await watcher.ask("prepare_run", runId="h", strategyPath=str(path))
    found = await asyncio.to_thread(health, daemon.port)
    assert (found["status"], found["activeRuns"]) == ("ok", 1)
    assert found["connectedClients"] >= 1
    assert isinstance(found["uptime"], int)
    await watcher.send("stop_run", runId="h")
    await watcher.ended()
    assert (await asyncio.to_thread(health, daemon.port))["activeRuns"] == 0


async def test_the_second_port_serves_the_same_runs(daemon: Daemon) -> None:
    port = int(daemon.environment["RUNS_PORT"])
    async with connect(url(port), proxy=None) as connection:
        assert (await Watcher(connection).ask("ping"))["type"] == "pong"
    assert (await asyncio.to_thread(health, port))["status"] == "ok"


@pytest.mark.parametrize(
    ("method", "path"), [("POST", "/health"), ("GET", "/"), ("POST", "/exec"), ("GET", "/users")]
)
async def test_the_port_for_runs_offers_nothing_else(
    daemon: Daemon, method: str, path: str
) -> None:
    port = int(daemon.environment["RUNS_PORT"])
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=WAIT_SECONDS)
    connection.request(method, path, body=b"{}" if method == "POST" else None)
    response = connection.getresponse()
    assert (response.status, response.read()) == (404, b"Not Found")
    connection.close()


@pytest.mark.parametrize("with_handshake", [False, True])
async def test_a_client_that_asks_without_reading_is_not_read_further(
    daemon: Daemon, with_handshake: bool
) -> None:
    ping = text_frame_masked(b'{"type":"ping","requestId":"%b"}' % (b"x" * 1000))
    async with connect(url(daemon.port), proxy=None) as first:
        # What the first client loads is not what this one takes.
        await first.send('{"type":"ping"}')
        await first.recv()
    before = resident_bytes(daemon)
    with socket.create_connection(("127.0.0.1", daemon.port), WAIT_SECONDS) as peer:
        frames = ping * 200 if with_handshake else b""
        peer.sendall(HANDSHAKE % daemon.port + frames)
        assert b"101 Switching Protocols" in peer.recv(4096)
        peer.settimeout(1.0)
        with pytest.raises(TimeoutError):
            send_up_to(peer, ping * 200, 200 * 1024 * 1024)
        # What waits is in the kernel's buffers, not in the daemon.
        assert resident_bytes(daemon) - before < 8 * 1024 * 1024
    assert (await asyncio.to_thread(health, daemon.port))["status"] == "ok"


async def test_everything_is_answered_once_a_late_reader_reads(daemon: Daemon) -> None:
    number = 20_000
    async with connect(url(daemon.port), max_size=None, proxy=None) as connection:
        pad = "x" * 500

        async def ask() -> None:
            for index in range(number):
                await connection.send(json.dumps({"type": "ping", "requestId": f"{index} {pad}"}))

        asking = asyncio.create_task(ask())
        async with asyncio.timeout(WAIT_SECONDS):
            for index in range(number):
                answer = json.loads(await connection.recv())
                assert answer["requestId"] == f"{index} {pad}"
        await asking


@pytest.mark.parametrize(
    ("old", "new", "status"),
    [
        (b"Sec-WebSocket-Version: 13", b"Sec-WebSocket-Version: 12", b"400"),
        (b"dGhlIHNhbXBsZSBub25jZQ==", b"short", b"400"),
    ],
)
async def test_a_handshake_that_is_none_is_refused_over_http(
    daemon: Daemon, old: bytes, new: bytes, status: bytes
) -> None:
    with socket.create_connection(("127.0.0.1", daemon.port), WAIT_SECONDS) as peer:
        peer.sendall(HANDSHAKE.replace(old, new) % daemon.port)
        answer = peer.recv(4096)
    assert answer.startswith(b"HTTP/1.1 " + status)


async def test_a_frame_without_its_mask_closes_with_1002(daemon: Daemon) -> None:
    with socket.create_connection(("127.0.0.1", daemon.port), WAIT_SECONDS) as peer:
        peer.sendall(HANDSHAKE % daemon.port)
        assert b"101 Switching Protocols" in peer.recv(4096)
        peer.sendall(b"".join(text_frames([b'{"type":"ping"}'])))
        answer = peer.recv(4096)
    assert (answer[0], int.from_bytes(answer[2:4], "big")) == (0x88, 1002)


def resident_bytes(daemon: Daemon) -> int:
    assert daemon.process is not None
    pages = Path(f"/proc/{daemon.process.pid}/statm").read_text("ascii").split()[1]
    return int(pages) * resource.getpagesize()


def send_up_to(peer: socket.socket, data: bytes, limit: int) -> None:
    sent = 0
    while sent < limit:
        sent += peer.send(data)


HANDSHAKE = (
    b"GET /ws HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
)


def text_frame_masked(payload: bytes) -> bytes:
    """A client's frame with a zero mask."""
    return b"\x81\xfe" + len(payload).to_bytes(2, "big") + bytes(4) + payload


@pytest.mark.parametrize("size", [0, 125, 126, 65535, 65536])
def test_frames_state_their_length(size: int) -> None:
    frame = b"".join(text_frames([b"x" * size]))
    head = 2 if size < 126 else 4 if size < 65536 else 10
    assert (frame[0], len(frame)) == (0x81, head + size)


def test_large_frames_are_written_without_a_copy_for_each_client() -> None:
    large = b"x" * SHARED_BYTES
    found = list(text_frames([b"a", large, b"b", b"c"]))
    assert [len(each) for each in found] == [3 + 4, len(large), 6]
    assert found[1] is large


@proves("RUN-26")
async def test_a_signal_cancels_runs_closes_sockets_and_ends_the_process(tmp_path: Path) -> None:
    path = tmp_path / "slow.yaml"
    path.write_text(yaml.safe_dump(SLOW), "utf-8")
    with Daemon(tmp_path) as daemon:
        async with connect(url(daemon.port), proxy=None) as connection:
            watcher = Watcher(connection)
            await watcher.ask("prepare_run", runId="r", strategyPath=str(path))
            await watcher.send("start_run", runId="r")
            await watcher.until("agent_streaming")
            stopping = asyncio.create_task(asyncio.to_thread(daemon.stop, signal.SIGTERM))
            assert await watcher.closed() == (1001, "Server shutting down")
            assert watcher.seen[-1]["error"]["code"] == "CANCELLED"
            assert await stopping == 0
    lines = (daemon.data_dir / "runs" / "r.jsonl").read_text("utf-8").splitlines()
    assert json.loads(lines[-1])["status"] == "cancelled"


async def test_a_client_that_never_reads_is_closed_with_a_code_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ws, "CLOSE_SECONDS", WAIT_SECONDS)
    loop = asyncio.get_running_loop()
    paused: asyncio.Future[ws.WebSocketConnection] = loop.create_future()
    pause = ws.WebSocketConnection.pause_writing

    def note(connection: ws.WebSocketConnection) -> None:
        pause(connection)
        paused.set_result(connection)

    monkeypatch.setattr(ws.WebSocketConnection, "pause_writing", note)
    ping = text_frame_masked(b'{"type":"ping","requestId":"%b"}' % (b"x" * 60_000))
    async with serving(tmp_path) as server:
        with socket.socket() as peer:
            peer.setblocking(False)
            await loop.sock_connect(peer, ("127.0.0.1", server.port))
            await loop.sock_sendall(peer, HANDSHAKE % server.port)
            asking = asyncio.create_task(loop.sock_sendall(peer, ping * 1000))
            connection = await asyncio.wait_for(paused, WAIT_SECONDS)
            # Time is told, not waited for.
            connection.look_after_peer()
            connection.look_after_peer()
            asking.cancel()
            received = b""
            async with asyncio.timeout(WAIT_SECONDS):
                while not received.endswith(ws.UNREAD.encode()):
                    received = received[-200:] + await loop.sock_recv(peer, 1 << 20)
    frame = received[received.rindex(b"\x88") :]
    assert int.from_bytes(frame[2:4], "big") == 1013

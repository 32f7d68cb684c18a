"""ASGI applications on our connections, over real sockets."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from stringd.server.http.asgi import AsgiApp, Message, Receive, Send, serve
from stringd.server.http.connection import HttpConnection
from stringd.server.http.crowd import Crowd
from stringd.server.http.messages import HttpError, HttpRequest, HttpResponse
from tests.support.daemon import WAIT_SECONDS

pytestmark = pytest.mark.anyio

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
REQUEST = b"POST /app?q=1 HTTP/1.1\r\nHost: x\r\nX-Name: v\r\nContent-Length: 4\r\n\r\nbody"


class Mounted:
    """An application whose every path is one ASGI application."""

    def __init__(self, app: AsgiApp) -> None:
        self._app = app
        self.errors: list[BaseException] = []

    async def handle(self, request: HttpRequest) -> HttpResponse:
        try:
            return await serve(self._app, request)
        except RuntimeError as error:
            self.errors.append(error)
            return HttpResponse(500, b"", str(error).encode())

    def judge(self, request: HttpRequest) -> HttpError | None:
        return None

    def judge_upgrade(
        self, method: bytes, path: bytes, headers: dict[bytes, bytes]
    ) -> HttpError | None:
        return None


@asynccontextmanager
async def client(app: AsgiApp) -> AsyncIterator[Streams]:
    """A connection to a server of this application."""
    loop = asyncio.get_running_loop()
    crowd = Crowd(loop)
    mounted = Mounted(app)
    server = await loop.create_server(
        lambda: HttpConnection(mounted, crowd, lambda *_: None), "127.0.0.1", 0
    )
    port = server.sockets[0].getsockname()[1]
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        async with asyncio.timeout(WAIT_SECONDS):
            yield reader, writer
    finally:
        writer.close()
        server.close()
        for task in list(crowd.tasks):
            task.cancel()
        await asyncio.gather(*crowd.tasks, return_exceptions=True)


async def head(reader: asyncio.StreamReader) -> tuple[int, dict[str, str]]:
    lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    pairs = [line.partition(": ") for line in lines[1:] if line]
    return int(lines[0].split()[1]), {name.lower(): value for name, _, value in pairs}


async def chunk(reader: asyncio.StreamReader) -> bytes:
    size = int(await reader.readuntil(b"\r\n"), 16)
    return (await reader.readexactly(size + 2))[:-2]


async def start(send: Send, status: int = 200, *headers: tuple[bytes, bytes]) -> None:
    await send({"type": "http.response.start", "status": status, "headers": list(headers)})


async def body(send: Send, data: bytes, *, more: bool = False) -> None:
    await send({"type": "http.response.body", "body": data, "more_body": more})


async def test_the_application_reads_the_request_and_its_answer_is_whole() -> None:
    seen: list[Message] = []

    async def app(scope: Message, receive: Receive, send: Send) -> None:
        seen.extend((scope, await receive()))
        await start(send, 201, (b"x-made", b"yes"), (b"content-length", b"99"))
        await body(send, b"hello")

    async with client(app) as (reader, writer):
        for _ in range(2):
            writer.write(REQUEST)
            status, headers = await head(reader)
            assert (status, headers["x-made"], headers["content-length"]) == (201, "yes", "5")
            assert headers["access-control-allow-origin"] == "*"
            assert await reader.readexactly(5) == b"hello"
    scope, message = seen[:2]
    assert (scope["method"], scope["path"], scope["query_string"]) == ("POST", "/app", b"q=1")
    assert (b"x-name", b"v") in scope["headers"]
    assert message == {"type": "http.request", "body": b"body", "more_body": False}


async def test_pieces_arrive_before_the_answer_ends_and_the_connection_is_kept() -> None:
    first_read = asyncio.Event()

    async def app(_scope: Message, _receive: Receive, send: Send) -> None:
        await start(send, 200, (b"content-type", b"text/event-stream"))
        await body(send, b"one", more=True)
        await first_read.wait()
        await body(send, b"", more=True)
        await body(send, b"two", more=True)
        await body(send, b"")

    async with client(app) as (reader, writer):
        writer.write(REQUEST + REQUEST)
        for _ in range(2):
            status, headers = await head(reader)
            assert (status, headers["transfer-encoding"]) == (200, "chunked")
            assert await chunk(reader) == b"one"
            first_read.set()
            assert await chunk(reader) == b"two"
            assert await chunk(reader) == b""


async def test_an_old_client_gets_the_stream_until_the_connection_ends() -> None:
    async def app(_scope: Message, _receive: Receive, send: Send) -> None:
        await start(send)
        await body(send, b"one", more=True)
        await body(send, b"two")

    async with client(app) as (reader, writer):
        writer.write(b"GET / HTTP/1.0\r\nHost: x\r\n\r\n")
        _, headers = await head(reader)
        assert "transfer-encoding" not in headers
        assert await reader.read() == b"onetwo"


async def test_the_application_hears_when_its_client_leaves() -> None:
    started, left = asyncio.Event(), asyncio.Event()

    async def app(_scope: Message, receive: Receive, _send: Send) -> None:
        await receive()
        started.set()
        assert (await receive())["type"] == "http.disconnect"
        left.set()

    async with client(app) as (_reader, writer):
        writer.write(REQUEST)
        await started.wait()
        writer.close()
        await left.wait()


async def test_a_wait_for_the_client_can_be_given_up_and_taken_up_again() -> None:
    async def app(_scope: Message, receive: Receive, send: Send) -> None:
        await receive()
        for _ in range(2):
            waiting = asyncio.ensure_future(receive())
            await asyncio.sleep(0)
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
        again = asyncio.ensure_future(receive())
        await asyncio.sleep(0)
        assert not again.done()
        again.cancel()
        await start(send)
        await body(send, b"fine")

    async with client(app) as (reader, writer):
        writer.write(REQUEST)
        assert (await head(reader))[0] == 200


async def test_a_failure_half_way_ends_the_connection_without_the_end_of_the_stream() -> None:
    async def app(_scope: Message, _receive: Receive, send: Send) -> None:
        await start(send)
        await body(send, b"one", more=True)
        raise ValueError("broken")

    async with client(app) as (reader, writer):
        writer.write(REQUEST)
        await head(reader)
        assert await reader.read() == b"3\r\none\r\n"


async def test_an_application_that_does_not_answer_is_an_error() -> None:
    async def app(_scope: Message, _receive: Receive, _send: Send) -> None:
        return

    async with client(app) as (reader, writer):
        writer.write(REQUEST)
        assert (await head(reader))[0] == 500


async def test_a_reader_slower_than_the_writer_gets_everything() -> None:
    piece = bytes(range(256)) * 4096

    async def app(_scope: Message, _receive: Receive, send: Send) -> None:
        await start(send)
        for _ in range(16):
            await body(send, piece, more=True)
        await body(send, b"end")

    async with client(app) as (reader, writer):
        writer.write(REQUEST)
        await head(reader)
        for _ in range(16):
            assert await chunk(reader) == piece
        assert await chunk(reader) == b"end"
        assert await chunk(reader) == b""


async def test_a_writer_nobody_reads_from_is_let_go_when_the_client_leaves() -> None:
    blocked, ended = asyncio.Event(), asyncio.Event()

    async def app(_scope: Message, _receive: Receive, send: Send) -> None:
        await start(send)
        blocked.set()
        await body(send, bytes(64 * 1024 * 1024), more=True)
        ended.set()
        await body(send, b"nobody reads this")

    async with client(app) as (reader, writer):
        writer.write(REQUEST)
        await head(reader)
        await blocked.wait()
        assert not ended.is_set()
        writer.transport.abort()
        await ended.wait()

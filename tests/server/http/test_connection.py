"""A connection on its own: stalling, idling, stopping. Time is told, not waited for."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable

import pytest

from stringd.server.http import connection as connection_module
from stringd.server.http.connection import (
    KEEP_ALIVE_SECONDS,
    STALL_SECONDS,
    HttpConnection,
)
from stringd.server.http.crowd import Crowd, Member
from stringd.server.http.messages import (
    ClientGone,
    HttpError,
    HttpRequest,
    HttpResponse,
    json_response,
)
from stringd.server.http.responder import TURN_REQUESTS
from tests.support.daemon import WAIT_SECONDS

pytestmark = pytest.mark.anyio


class Application:
    """Answers at once, or for `/slow` when `answer` is resolved."""

    def __init__(self) -> None:
        self.answer: asyncio.Future[HttpResponse] = asyncio.get_running_loop().create_future()
        self.asked = asyncio.Event()
        self.paths: list[str] = []

    def handle(self, request: HttpRequest) -> HttpResponse | Awaitable[HttpResponse]:
        self.asked.set()
        self.paths.append(request.path)
        return self.answer if request.path == "/slow" else json_response(200, request.path)

    def judge(self, request: HttpRequest) -> HttpError | None:
        return None

    def judge_upgrade(
        self, method: bytes, path: bytes, headers: dict[bytes, bytes]
    ) -> HttpError | None:
        return None


class Served:
    """A client's two ends, and the connection that serves it."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    def __init__(self) -> None:
        self.app = Application()
        self.crowd = Crowd(asyncio.get_running_loop())

    def accept(self) -> HttpConnection:
        return HttpConnection(self.app, self.crowd, lambda *_: None)

    @property
    def connection(self) -> Member:
        (connection,) = self.crowd.connections
        return connection

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def receive(self) -> tuple[int, object]:
        head = await asyncio.wait_for(self.reader.readuntil(b"\r\n\r\n"), WAIT_SECONDS)
        length = next(line for line in head.split(b"\r\n") if line.startswith(b"Content-Length"))
        body = await self.reader.readexactly(int(length.partition(b":")[2]))
        return int(head.split()[1]), json.loads(body)

    async def ended(self) -> bool:
        return await asyncio.wait_for(self.reader.read(), WAIT_SECONDS) == b""


@pytest.fixture
async def served() -> AsyncIterator[Served]:
    one = Served()
    server = await asyncio.get_running_loop().create_server(one.accept, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    one.reader, one.writer = await asyncio.open_connection("127.0.0.1", port)
    yield one
    one.writer.close()
    server.close()
    await server.wait_closed()


async def exchanged(served: Served) -> None:
    """One whole exchange, so that the connection is known to stand."""
    await served.send(b"GET /one HTTP/1.1\r\n\r\n")
    assert await served.receive() == (200, "/one")


@pytest.mark.parametrize("begun", [b"GET /x HT", b"POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\n{"])
async def test_a_request_that_stalls_is_told_and_ended(served: Served, begun: bytes) -> None:
    await served.send(b"GET /one HTTP/1.1\r\n\r\n" + begun)
    assert await served.receive() == (200, "/one")
    now = asyncio.get_running_loop().time()
    served.connection.sweep(now + STALL_SECONDS - 1)
    served.connection.sweep(now + STALL_SECONDS + 1)
    status, body = await served.receive()
    assert (status, body) == (408, {"error": "Request did not go on for 30 seconds"})
    assert await served.ended()


async def test_an_idle_connection_is_closed_after_a_while(served: Served) -> None:
    await exchanged(served)
    now = asyncio.get_running_loop().time()
    served.connection.sweep(now + KEEP_ALIVE_SECONDS - 1)
    await exchanged(served)
    served.connection.sweep(now + KEEP_ALIVE_SECONDS + 10)
    assert await served.ended()


async def test_a_running_request_is_never_idle(served: Served) -> None:
    await served.send(b"GET /slow HTTP/1.1\r\n\r\n")
    await asyncio.wait_for(served.app.asked.wait(), WAIT_SECONDS)
    served.connection.sweep(asyncio.get_running_loop().time() + 10_000)
    served.app.answer.set_result(json_response(200, "done"))
    assert await served.receive() == (200, "done")


async def test_stopping_closes_what_is_idle(served: Served) -> None:
    await exchanged(served)
    served.connection.stop()
    assert await served.ended()


async def test_stopping_lets_an_answer_under_way_finish(served: Served) -> None:
    await served.send(b"GET /slow HTTP/1.1\r\n\r\n")
    await asyncio.wait_for(served.app.asked.wait(), WAIT_SECONDS)
    served.connection.stop()
    served.app.answer.set_result(json_response(200, "done"))
    assert await served.receive() == (200, "done")
    assert await served.ended()


async def test_nobody_is_answered_who_has_left(served: Served) -> None:
    await served.send(b"GET /slow HTTP/1.1\r\n\r\n")
    await asyncio.wait_for(served.app.asked.wait(), WAIT_SECONDS)
    served.app.answer.set_exception(ClientGone())
    assert await served.ended()
    assert served.crowd.tasks == set()


async def test_a_request_that_never_ends_is_told_and_ended(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    await served.send(b"GET /one HTTP/1.1\r\n\r\nPOST / HTTP/1.1\r\nContent-Length: 9\r\n\r\n{")
    assert await served.receive() == (200, "/one")
    now = asyncio.get_running_loop().time()
    served.connection.sweep(now)
    monkeypatch.setattr(connection_module, "REQUEST_SECONDS", 0.0)
    served.connection.sweep(now + 1)
    error = "Request was not complete after 0 seconds"
    assert await served.receive() == (408, {"error": error})
    assert await served.ended()


async def test_what_is_no_request_is_refused_after_the_answer_before_it(served: Served) -> None:
    await served.send(b"GET /slow HTTP/1.1\r\n\r\nBROKEN\r\n\r\n")
    await asyncio.wait_for(served.app.asked.wait(), WAIT_SECONDS)
    served.app.answer.set_result(json_response(200, "done"))
    assert await served.receive() == (200, "done")
    assert (await served.receive())[0] == 400
    assert await served.ended()


async def test_a_half_sent_request_has_time_while_the_one_before_it_runs(served: Served) -> None:
    await served.send(b"GET /slow HTTP/1.1\r\n\r\nGET /ne")
    await asyncio.wait_for(served.app.asked.wait(), WAIT_SECONDS)
    served.connection.sweep(asyncio.get_running_loop().time() + 10_000)
    served.app.answer.set_result(json_response(200, "done"))
    assert await served.receive() == (200, "done")
    await served.send(b"xt HTTP/1.1\r\n\r\n")
    assert await served.receive() == (200, "/next")


async def test_thousands_of_requests_wait_behind_a_slow_one(served: Served) -> None:
    sending = asyncio.create_task(
        served.send(
            b"GET /slow HTTP/1.1\r\n\r\n"
            + b"".join(b"GET /%d HTTP/1.1\r\n\r\n" % number for number in range(20_000))
        )
    )
    await asyncio.wait_for(served.app.asked.wait(), WAIT_SECONDS)
    served.app.answer.set_result(json_response(200, "done"))
    assert await served.receive() == (200, "done")
    for number in range(20_000):
        assert await served.receive() == (200, f"/{number}")
    await sending


async def test_a_packet_of_requests_does_not_keep_others_waiting(served: Served) -> None:
    await exchanged(served)
    reader, writer = await asyncio.open_connection(*served.writer.get_extra_info("peername")[:2])
    writer.write(b"GET /one HTTP/1.1\r\n\r\n")
    await asyncio.wait_for(reader.readuntil(b'"/one"'), WAIT_SECONDS)
    served.app.paths.clear()
    # Both are there before the loop looks at either.
    served.writer.get_extra_info("socket")._sock.send(b"GET /many HTTP/1.1\r\n\r\n" * 1000)
    writer.get_extra_info("socket")._sock.send(b"GET /single HTTP/1.1\r\n\r\n")
    await asyncio.wait_for(reader.readuntil(b'"/single"'), WAIT_SECONDS)
    for _ in range(1000):
        assert await served.receive() == (200, "/many")
    assert served.app.paths.index("/single") <= TURN_REQUESTS
    writer.close()

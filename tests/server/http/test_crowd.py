"""Too many connections, bodies, requests and unread answers: who gives way, and what is said."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from typing import NamedTuple

import pytest

from stringd.server.http.budget import PeerLimits
from stringd.server.http.connection import HttpConnection
from stringd.server.http.crowd import Crowd
from stringd.server.http.messages import HttpError, HttpRequest, HttpResponse, json_response
from stringd.server.visitors import Visitor
from tests.runs.support import wait_until
from tests.support.daemon import WAIT_SECONDS

pytestmark = pytest.mark.anyio

FORBIDDEN = "Forbidden: not yours"


class Application:
    """`/slow` waits for `go_on`, `/large` answers with megabytes, the rest at once."""

    def __init__(self) -> None:
        self.go_on = asyncio.Event()
        self.running = asyncio.Semaphore(0)

    def handle(self, request: HttpRequest) -> HttpResponse | Awaitable[HttpResponse]:
        if request.path == "/slow":
            return self._slow()
        if request.path == "/large":
            return HttpResponse(200, b"", b"x" * 16 * 1024 * 1024)
        return json_response(200, len(request.body))

    async def _slow(self) -> HttpResponse:
        self.running.release()
        await self.go_on.wait()
        return json_response(200, "slow")

    def judge(self, request: HttpRequest) -> HttpError | None:
        return None

    def judge_upgrade(
        self, method: bytes, path: bytes, headers: dict[bytes, bytes]
    ) -> HttpError | None:
        return None


class Answer(NamedTuple):
    status: int
    head: bytes
    body: object


class Client:
    """One connection to the server under test."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    def send(self, data: bytes) -> None:
        self.writer.write(data)

    async def ask(self, path: bytes = b"/") -> Answer:
        self.send(b"GET %b HTTP/1.1\r\n\r\n" % path)
        return await self.receive()

    async def receive(self) -> Answer:
        async with asyncio.timeout(WAIT_SECONDS):
            head = await self.reader.readuntil(b"\r\n\r\n")
            length = int(head.partition(b"Content-Length: ")[2].split()[0])
            body = await self.reader.readexactly(length)
        return Answer(int(head.split()[1]), head, json.loads(body))

    async def ended(self) -> None:
        async with asyncio.timeout(WAIT_SECONDS):
            assert await self.reader.read() == b""


class Hall:
    """A server with small limits, and every client it has."""

    def __init__(self, limits: PeerLimits, unread: int) -> None:
        self.app = Application()
        self.crowd = Crowd(asyncio.get_running_loop(), limits, unread=unread)
        self.visitor = Visitor(None, None, 1000)
        self.clients: list[Client] = []
        self.port = 0

    def accept(self) -> HttpConnection:
        return HttpConnection(self.app, self.crowd, lambda *_: None, lambda _: self.visitor)

    async def client(self) -> Client:
        client = Client(*await asyncio.open_connection("127.0.0.1", self.port))
        self.clients.append(client)
        return client

    async def running(self, number: int) -> list[Client]:
        """Clients whose request is being answered."""
        clients = [await self.client() for _ in range(number)]
        for client in clients:
            client.send(b"GET /slow HTTP/1.1\r\n\r\n")
            async with asyncio.timeout(WAIT_SECONDS):
                await self.app.running.acquire()
        return clients


@asynccontextmanager
async def hall(limits: PeerLimits, unread: int = 1 << 30) -> AsyncIterator[Hall]:
    one = Hall(limits, unread)
    server = await asyncio.get_running_loop().create_server(one.accept, "127.0.0.1", 0)
    one.port = server.sockets[0].getsockname()[1]
    yield one
    one.app.go_on.set()
    for client in one.clients:
        client.writer.close()
    server.close()
    await asyncio.gather(*one.crowd.tasks)


async def test_the_longest_idle_connection_gives_way_to_a_new_one() -> None:
    async with hall(PeerLimits(connections=8)) as one:
        clients = [await one.client() for _ in range(7)]
        for client in clients:
            assert (await client.ask()).status == 200
        assert (await clients[0].ask()).status == 200
        assert (await (await one.client()).ask()).status == 200
        await clients[1].ended()
        for client in (clients[0], *clients[2:]):
            assert (await client.ask()).status == 200
        assert one.crowd.budget.all.connections == 7


async def test_a_flood_of_connections_always_leaves_room_for_a_request() -> None:
    async with hall(PeerLimits(connections=64)) as one:
        for _ in range(500):
            await one.client()
        assert (await (await one.client()).ask()).status == 200
        assert one.crowd.budget.all.connections <= 64


async def test_what_is_being_answered_does_not_give_way() -> None:
    async with hall(PeerLimits(connections=8)) as one:
        running = await one.running(7)
        refused = await (await one.client()).receive()
        assert refused.status == 503
        assert refused.body == {
            "error": "The daemon is busy with too many requests at once: try again later"
        }
        assert b"Retry-After: 1\r\n" in refused.head
        one.app.go_on.set()
        for client in running:
            assert (await client.receive()).body == "slow"


async def test_requests_beyond_the_limit_are_told_to_come_back() -> None:
    async with hall(PeerLimits(requests=8)) as one:
        running = await one.running(7)
        late = await one.client()
        assert (await late.ask(b"/slow")).status == 503
        assert (await late.ask(b"/health")).status == 200
        one.app.go_on.set()
        for client in running:
            assert (await client.receive()).status == 200
        assert (await late.ask(b"/slow")).body == "slow"
        assert one.crowd.budget.all.requests == 0


async def test_large_bodies_share_a_budget_and_small_ones_are_always_taken() -> None:
    head = b"POST / HTTP/1.1\r\nContent-Length: %d\r\n\r\n"
    async with hall(PeerLimits(body_bytes=1_000_000)) as one:
        first, second, third = [await one.client() for _ in range(3)]
        first.send(head % 800_000 + b"x" * 799_999)
        await wait_until(lambda: one.crowd.budget.all.body_bytes == 799_999)
        second.send(head % 800_000 + b"x" * 800_000)
        refused = await second.receive()
        assert refused.status == 503
        assert refused.body == {"error": "Too many large bodies at once: try again later"}
        third.send(head % 60_000 + b"x" * 60_000)
        assert (await third.receive()).body == 60_000
        first.send(b"x")
        assert (await first.receive()).body == 800_000
        second.send(head % 800_000 + b"x" * 800_000)
        assert (await second.receive()).body == 800_000
        assert one.crowd.budget.all.body_bytes == 0


async def test_who_leaves_half_way_holds_nothing() -> None:
    async with hall(PeerLimits(body_bytes=1_000_000)) as one:
        first = await one.client()
        first.send(b"POST / HTTP/1.1\r\nContent-Length: 900000\r\n\r\n" + b"x" * 800_000)
        await first.writer.drain()
        first.writer.close()
        await first.writer.wait_closed()
        await wait_until(lambda: not one.crowd.connections)
        assert (one.crowd.budget.all.body_bytes, one.crowd.budget.all.connections) == (0, 0)


async def test_strangers_are_few_and_do_not_crowd_anybody_out() -> None:
    async with hall(PeerLimits(connections=16, strangers=2)) as one:
        mine = await one.client()
        assert (await mine.ask()).status == 200
        one.visitor = Visitor(FORBIDDEN, 0, 7)
        silent = [await one.client() for _ in range(2)]
        third = await one.client()
        assert (await third.receive()).body == {"error": FORBIDDEN}
        await third.ended()
        assert (await silent[0].ask()).status == 403
        assert (await mine.ask()).status == 200


async def test_an_answer_nobody_reads_gives_way_to_the_next() -> None:
    async with hall(PeerLimits(), unread=20 * 1024 * 1024) as one:
        first, second = await one.client(), await one.client()
        first.send(b"GET /large HTTP/1.1\r\n\r\n")
        await first.reader.readuntil(b"\r\n\r\n")
        second.send(b"GET /large HTTP/1.1\r\n\r\n")
        await second.reader.readuntil(b"\r\n\r\n")
        with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
            await asyncio.wait_for(first.reader.readexactly(16 * 1024 * 1024), WAIT_SECONDS)
        body = await asyncio.wait_for(second.reader.readexactly(16 * 1024 * 1024), WAIT_SECONDS)
        assert len(body) == 16 * 1024 * 1024

"""Requests whose answers are read piece by piece: connections kept, failures in words."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from stringd.net.fetch import FetchError, HostUnreachableError
from stringd.net.streams import StreamClient
from tests.support.daemon import WAIT_SECONDS, free_port

pytestmark = pytest.mark.anyio


class Server:
    """Answers once as many requests as `together` have arrived."""

    def __init__(self, together: int) -> None:
        self.connections = 0
        self.port = 0
        self._left = together
        self._all_here = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while True:
                await reader.readuntil(b"\r\n\r\n")
                await reader.readexactly(2)
                self._left -= 1
                if self._left <= 0:
                    self._all_here.set()
                await self._all_here.wait()
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()


@asynccontextmanager
async def serving(together: int = 1) -> AsyncIterator[tuple[Server, StreamClient]]:
    server, client = Server(together), StreamClient()
    listener = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    server.port = listener.sockets[0].getsockname()[1]
    try:
        yield server, client
    finally:
        await client.close()
        listener.close()


async def asked(client: StreamClient, port: int) -> bytes:
    async with client.post(f"http://127.0.0.1:{port}/", {}, b"{}") as answer:
        return await answer.whole()


async def test_one_request_after_another_uses_one_connection() -> None:
    async with serving() as (server, client):
        assert [await asked(client, server.port) for _ in range(5)] == [b"ok"] * 5
        assert server.connections == 1


async def test_many_requests_at_once_are_all_sent_and_their_connections_used_again() -> None:
    async with serving(together=50) as (server, client), asyncio.timeout(WAIT_SECONDS):
        for _ in range(2):
            answers = await asyncio.gather(*(asked(client, server.port) for _ in range(50)))
            assert answers == [b"ok"] * 50
        assert server.connections == 50


async def test_a_server_that_is_not_there_is_told_apart_from_one_that_fails() -> None:
    client = StreamClient()
    with pytest.raises(HostUnreachableError):
        await asked(client, free_port())
    with pytest.raises(FetchError):
        async with client.post("no address", {}, b""):
            pass
    await client.close()

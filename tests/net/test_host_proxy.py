"""The proxy of a network of named hosts, without walls around the client."""

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from stringd.net.host_proxy import MAX_CONNECTIONS, HostProxy, hosts_in
from tests.support.daemon import WAIT_SECONDS

pytestmark = pytest.mark.anyio


class Entrance:
    """Where clients connect; the sandbox has ended when `life` is closed."""

    def __init__(self, port: int, life: int) -> None:
        self.port = port
        self.life = life

    async def say(self, text: bytes) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(text)
        answer = await asyncio.wait_for(reader.read(), WAIT_SECONDS)
        writer.close()
        return answer


@asynccontextmanager
async def proxied(*hosts: str) -> AsyncIterator[tuple[HostProxy, Entrance]]:
    proxy = HostProxy(hosts_in(hosts))
    ended, life = os.pipe()
    try:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            with socket.socket(socket.AF_UNIX) as connection:
                connection.connect(str(proxy.way_out.proxy))
                socket.send_fds(connection, [b"\0"], [listener.fileno(), ended])
                connection.setblocking(False)
                taken = await asyncio.wait_for(
                    asyncio.get_running_loop().sock_recv(connection, 1), WAIT_SECONDS
                )
                assert taken == b"y"
            entrance = Entrance(listener.getsockname()[1], life)
        yield proxy, entrance
    finally:
        os.close(ended)
        if entrance.life >= 0:
            os.close(life)
        await proxy.close()


@asynccontextmanager
async def answering(
    answer: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]],
) -> AsyncIterator[int]:
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"heard " + await reader.readline())
    await writer.drain()
    writer.close()


async def test_a_tunnel_passes_bytes_both_ways() -> None:
    async with answering(echo) as port, proxied(f"127.0.0.1:{port}") as (_, entrance):
        said = await entrance.say(f"CONNECT 127.0.0.1:{port} HTTP/1.1\r\n\r\nhello\n".encode())
    assert said == b"HTTP/1.1 200 Connection established\r\n\r\nheard hello\n"


@pytest.mark.parametrize("spelled", ["127.1", "2130706433", "0x7f000001"])
async def test_a_name_that_leads_to_a_private_address_is_refused(spelled: str) -> None:
    async with answering(echo) as port, proxied(f"{spelled}:{port}") as (_, entrance):
        said = await entrance.say(f"CONNECT {spelled}:{port} HTTP/1.1\r\n\r\n".encode())
    assert said.startswith(b"HTTP/1.1 403")
    assert b"leads to a private address" in said


async def test_other_spellings_of_a_listed_address_are_other_hosts() -> None:
    async with answering(echo) as port, proxied(f"127.0.0.1:{port}") as (proxy, entrance):
        for spelled in ("127.1", "localhost", "[::ffff:127.0.0.1]"):
            said = await entrance.say(f"CONNECT {spelled}:{port} HTTP/1.1\r\n\r\n".encode())
            assert said.startswith(b"HTTP/1.1 403"), spelled
        assert proxy.refused == [
            f"127.1:{port}",
            f"localhost:{port}",
            f"[::ffff:127.0.0.1]:{port}",
        ]


async def test_metadata_services_are_refused_though_they_are_listed() -> None:
    async with proxied("169.254.169.254", "metadata.google.internal") as (_, entrance):
        for host in ("169.254.169.254", "metadata.google.internal"):
            said = await entrance.say(f"GET http://{host}/ HTTP/1.1\r\n\r\n".encode())
            assert b"is a cloud metadata service" in said


async def test_what_is_not_a_request_is_answered_with_400() -> None:
    async with proxied("a.test") as (_, entrance):
        for text in (b"GET / HTTP/1.1\r\n\r\n", b"\0\xff\r\n\r\n", b"x" * 200_000):
            assert (await entrance.say(text)).startswith(b"HTTP/1.1 400")


async def test_connections_end_with_the_sandbox() -> None:
    async with (
        answering(_wait_for_the_end) as port,
        proxied(f"127.0.0.1:{port}") as (proxy, entrance),
    ):
        reader, writer = await asyncio.open_connection("127.0.0.1", entrance.port)
        writer.write(f"CONNECT 127.0.0.1:{port} HTTP/1.1\r\n\r\n".encode())
        assert await reader.readuntil(b"\r\n\r\n")
        os.close(entrance.life)
        entrance.life = -1
        assert await asyncio.wait_for(reader.read(), WAIT_SECONDS) == b""
        writer.close()
        assert not proxy.way_out.proxy.exists()


async def test_one_sandbox_has_so_many_connections_at_once() -> None:
    async with (
        answering(_wait_for_the_end) as port,
        proxied(f"127.0.0.1:{port}") as (_, entrance),
    ):
        opened = []
        for _each in range(MAX_CONNECTIONS):
            reader, writer = await asyncio.open_connection("127.0.0.1", entrance.port)
            writer.write(f"CONNECT 127.0.0.1:{port} HTTP/1.1\r\n\r\n".encode())
            assert await reader.readuntil(b"\r\n\r\n")
            opened.append(writer)
        assert (await entrance.say(b"")).startswith(b"HTTP/1.1 503")
        for writer in opened:
            writer.close()


async def _wait_for_the_end(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read()
    writer.close()

"""MCP servers by URL: every connection goes to the address that was judged."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from stringd.net import addresses
from stringd.net.mcp_client import McpError, McpServers, ServerSpec
from tests.support.daemon import WAIT_SECONDS

pytestmark = pytest.mark.anyio

NAME = "rebound.example"


class Recorder:
    """A port that writes down what it is sent, and answers nothing an MCP client could use."""

    def __init__(self) -> None:
        self.heads: list[str] = []
        self.port = 0

    @asynccontextmanager
    async def listening(self) -> AsyncIterator["Recorder"]:
        server = await asyncio.start_server(self._accepted, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        async with server:
            yield self

    async def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        self.heads.append(head.decode("latin-1").partition("\r\n")[0])
        writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        await writer.drain()
        writer.close()


async def asked(spec: ServerSpec) -> str:
    """Why a server could not be asked for its tools."""
    servers = McpServers[str]()
    try:
        with pytest.raises(McpError) as refused:
            await servers.use("a", spec, lambda there: there.list_tools(), WAIT_SECONDS)
        return str(refused.value)
    finally:
        await servers.close()


@pytest.mark.parametrize("transport", ["http", "sse"])
async def test_a_name_that_leads_elsewhere_after_it_was_judged_is_not_followed(
    transport: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first look-up finds a public address, each later one a port of the daemon itself."""
    looked_up = socket.getaddrinfo
    answers = iter(["93.184.215.14"])

    def rebinding(host: Any, *rest: Any, **how: Any) -> Any:
        text = host.decode() if isinstance(host, bytes) else host
        return looked_up(next(answers, "127.0.0.1") if text == NAME else host, *rest, **how)

    monkeypatch.setattr(socket, "getaddrinfo", rebinding)
    async with Recorder().listening() as recorder:
        monkeypatch.setattr(addresses, "_own_ports", {recorder.port})
        spec = ServerSpec(transport, url=f"http://{NAME}:{recorder.port}/mcp")
        assert "is a port of this daemon" in await asked(spec)
    assert recorder.heads == []


async def test_the_owners_proxy_is_asked_for_names(monkeypatch: pytest.MonkeyPatch) -> None:
    async with Recorder().listening() as proxy:
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{proxy.port}")
        monkeypatch.setenv("no_proxy", "")
        await asked(ServerSpec("http", url="http://only-the-proxy-knows.invalid/mcp"))
    assert "POST http://only-the-proxy-knows.invalid/mcp HTTP/1.1" in proxy.heads


async def test_a_name_with_several_addresses_is_asked_where_somebody_answers() -> None:
    async with Recorder().listening() as recorder:
        await asked(ServerSpec("http", url=f"http://localhost:{recorder.port}/mcp"))
    assert "POST /mcp HTTP/1.1" in recorder.heads

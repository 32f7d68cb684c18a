"""MCP servers that send without end: others are served meanwhile, and the flood is ended."""

import asyncio
import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from stringd.net.mcp_client import McpClient, McpError, McpFloodError, McpServers, ServerSpec
from tests.net import flooding_server, mortal_server
from tests.runs.support import wait_until
from tests.support.daemon import WAIT_SECONDS
from tests.support.web import Reply, WebServer

if TYPE_CHECKING:
    from mcp import Client

pytestmark = pytest.mark.anyio

ENVIRONMENT = {"PATH": os.environ["PATH"]}
FLOODING = ServerSpec("stdio", (sys.executable, str(flooding_server.__file__)), ENVIRONMENT)
OTHER = ServerSpec("stdio", (sys.executable, str(mortal_server.__file__)), ENVIRONMENT)


def calling(tool: str, **arguments: str) -> "Any":
    async def ask(client: "Client") -> str:
        result = await client.call_tool(tool, arguments)
        return str(getattr(result.content[0], "text", ""))

    return ask


@pytest.fixture
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stringd.net.mcp_budget.FLOOD_SECONDS", 0.2)


async def is_over(client: McpClient) -> None:
    """Return when the server has been ended; the test's own limit bounds it."""
    await wait_until(lambda: not client.running)


@pytest.mark.usefixtures("_impatient")
@pytest.mark.parametrize("kind", ["messages", "nonsense", "line", "values"])
async def test_a_server_that_floods_is_ended_and_started_again(kind: str) -> None:
    client = McpClient(FLOODING)
    assert await client.ask(calling("number"), WAIT_SECONDS) == "1"
    # Whether the answer is read before the flood is a matter of luck.
    with suppress(McpFloodError):
        await client.ask(calling("flood", kind=kind), WAIT_SECONDS)
    await is_over(client)
    assert await client.ask(calling("number"), WAIT_SECONDS) == "1"
    await client.stop()


async def test_whoever_waits_for_an_answer_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    client = McpClient(FLOODING)
    monkeypatch.setattr("stringd.net.line_process.MAX_MESSAGE_BYTES", 100_000)
    await client.ask(calling("flood", kind="printed"), WAIT_SECONDS)
    with pytest.raises(McpFloodError, match="sent a message larger than"):
        await ask_for_ever(client)
    await is_over(client)


async def ask_for_ever(client: McpClient) -> None:
    while True:
        await client.ask(calling("flood", kind="line"), WAIT_SECONDS)


async def test_what_a_server_prints_without_end_keeps_nobody_waiting() -> None:
    client = McpClient(FLOODING)
    await client.ask(calling("flood", kind="printed"), WAIT_SECONDS)
    for _ in range(20):
        assert await client.ask(calling("number"), WAIT_SECONDS) == "1"
    await client.stop()


async def test_another_server_is_mounted_meanwhile() -> None:
    servers = McpServers[str]()
    await servers.use("flood", FLOODING, calling("number"), WAIT_SECONDS)
    flood = servers.use("flood", FLOODING, calling("flood", kind="messages"), WAIT_SECONDS)
    flooding = asyncio.create_task(flood)
    for key in ("a", "b"):
        assert await servers.use(key, OTHER, calling("number"), WAIT_SECONDS)
    await servers.close()
    with suppress(McpError):
        await flooding


@pytest.mark.usefixtures("_impatient")
async def test_one_that_does_it_again_and_again_is_not_started_for_a_while() -> None:
    client = McpClient(FLOODING)
    for _ in range(3):
        with suppress(McpFloodError):
            await client.ask(calling("flood", kind="values"), WAIT_SECONDS)
        await is_over(client)
    with pytest.raises(McpFloodError, match="is not started again for"):
        await client.ask(calling("number"), WAIT_SECONDS)
    assert not client.running


async def test_an_endless_answer_of_a_server_on_the_web_is_not_read_to_its_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("stringd.net.mcp_web.MAX_MESSAGE_BYTES", 100_000)
    with WebServer(Reply(b"x" * 4_000_000)) as web:
        client = McpClient(ServerSpec("http", url=f"{web.url}/mcp"))
        with pytest.raises(McpFloodError, match="sent a message larger than"):
            await client.ask(calling("number"), WAIT_SECONDS)
        await client.stop()

"""MCP servers: when they run, when they stop, and what becomes of dead ones."""

import asyncio
import os
import sys
from typing import TYPE_CHECKING, Any

import pytest

from stringd.net import line_process, mcp_connection
from stringd.net.mcp_client import (
    McpAnswerError,
    McpCallError,
    McpClient,
    McpError,
    McpServers,
    McpStartError,
    McpTimeoutError,
    ServerSpec,
    list_tools,
)
from tests.net import mortal_server
from tests.requirements import proves
from tests.support.daemon import WAIT_SECONDS

if TYPE_CHECKING:
    from mcp import Client

pytestmark = pytest.mark.anyio

ENVIRONMENT = {"PATH": os.environ["PATH"]}
MORTAL = ServerSpec("stdio", (sys.executable, str(mortal_server.__file__)), ENVIRONMENT)


def calling(tool: str) -> "Any":
    async def ask(client: "Client") -> str:
        result = await client.call_tool(tool, {})
        return str(getattr(result.content[0], "text", ""))

    return ask


@proves("ACT-39")
async def test_an_idle_server_stops_and_starts_again() -> None:
    servers = McpServers[str](idle_seconds=0.05)
    seen = set()
    for _ in range(2):
        seen.add(await servers.use("a", MORTAL, calling("number"), WAIT_SECONDS))
        async with asyncio.timeout(WAIT_SECONDS):
            await servers.ended()
        assert servers.running == 0
    assert len(seen) == 2


@proves("ACT-39")
async def test_calls_share_one_server_and_closing_stops_it() -> None:
    servers = McpServers[str]()
    asked = (servers.use("a", MORTAL, calling("number"), WAIT_SECONDS) for _ in range(5))
    assert len(set(await asyncio.gather(*asked))) == 1
    assert servers.running == 1
    await servers.close()
    assert servers.running == 0


async def test_a_server_asked_for_in_another_way_is_started_that_way() -> None:
    servers = McpServers[str]()
    first = await servers.use("a", MORTAL, calling("number"), WAIT_SECONDS)
    other = MORTAL._replace(environment={**ENVIRONMENT, "X": "1"})
    assert await servers.use("a", other, calling("number"), WAIT_SECONDS) != first
    assert servers.running == 1
    await servers.close()


async def test_a_server_that_died_is_started_again_with_the_next_call() -> None:
    client = McpClient(MORTAL)
    first = await client.ask(calling("number"), WAIT_SECONDS)
    assert client.connected
    with pytest.raises(McpCallError, match="Connection closed") as died:
        await client.ask(calling("die"), WAIT_SECONDS)
    assert died.value.lost
    asked = (client.ask(calling("number"), WAIT_SECONDS) for _ in range(3))
    again = set(await asyncio.gather(*asked))
    assert len({first, *again}) == 2
    with pytest.raises(McpCallError, match=r"own failure$") as failed:
        await client.ask(calling("fail"), WAIT_SECONDS)
    assert not failed.value.lost
    assert await client.ask(calling("number"), WAIT_SECONDS) in again
    await client.stop()


async def test_every_tool_is_listed() -> None:
    client = McpClient(MORTAL)
    tools = await client.ask(list_tools, WAIT_SECONDS)
    assert [tool.name for tool in tools] == ["number", "die", "fail"]
    await client.stop()


async def test_what_the_caller_makes_of_an_answer_passes_unchanged() -> None:
    async def ask(_client: "Client") -> None:
        raise McpAnswerError("as it says")

    client = McpClient(MORTAL)
    with pytest.raises(McpAnswerError, match="as it says"):
        await client.ask(ask, WAIT_SECONDS)
    assert client.connected
    await client.stop()


async def test_a_closed_client_ends_and_is_not_started_again() -> None:
    tasks: set[asyncio.Task[None]] = set()
    client = McpClient(MORTAL, idle_seconds=None, tasks=tasks)
    await client.ask(calling("number"), WAIT_SECONDS)
    client.close()
    async with asyncio.timeout(WAIT_SECONDS):
        await asyncio.gather(*tasks)
    assert not client.running
    with pytest.raises(McpError, match="closed"):
        await client.ask(calling("number"), WAIT_SECONDS)


async def test_stopping_fails_whoever_waits_for_the_start() -> None:
    client = McpClient(MORTAL._replace(command=("sleep", "1000")))
    with pytest.raises(McpTimeoutError):
        await client.ask(calling("number"), 0.2)
    assert client.running
    asking = asyncio.create_task(client.ask(calling("number"), WAIT_SECONDS))
    await asyncio.sleep(0)
    await client.stop()
    with pytest.raises(McpError, match="closed"):
        await asking


async def test_a_server_that_never_said_anything_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Neither the time to start nor the time to end by itself is over within the test.
    monkeypatch.setattr(mcp_connection, "START_SECONDS", 10 * WAIT_SECONDS)
    monkeypatch.setattr(line_process, "GRACE_SECONDS", 10 * WAIT_SECONDS)
    servers = McpServers[str]()
    await servers.use("speaks", MORTAL, calling("number"), WAIT_SECONDS)
    mute = MORTAL._replace(command=("sh", "-c", "trap '' TERM; echo up >&2; sleep 1000"))
    asking = asyncio.create_task(servers.use("mute", mute, calling("number")))
    async with asyncio.timeout(WAIT_SECONDS):
        while servers.running < 2:  # noqa: ASYNC110 - a program that says nothing
            await asyncio.sleep(0.01)
        servers.close_unanswered()
        with pytest.raises(McpError, match="closed"):
            await asking
        assert servers.running == 1
        await servers.close()


@pytest.mark.parametrize(
    ("spec", "cause"),
    [
        (MORTAL._replace(command=("/no/such/program",)), FileNotFoundError),
        (MORTAL._replace(cwd="/no/such/directory"), NotADirectoryError),
        (MORTAL._replace(command=("sh", "-c", "echo oh dear >&2")), Exception),
        (ServerSpec("http", url="http://127.0.0.1:9/x"), Exception),
        (ServerSpec("sse", url="http://127.0.0.1:9/x"), Exception),
    ],
)
async def test_a_server_that_does_not_start_says_why(
    spec: ServerSpec, cause: type[Exception]
) -> None:
    client = McpClient(spec)
    with pytest.raises(McpStartError) as failed:
        await client.ask(calling("number"), WAIT_SECONDS)
    assert isinstance(failed.value.cause, cause)
    assert ("oh dear" in failed.value.printed) == ("oh dear" in str(spec.command))


async def test_a_silent_server_is_not_waited_for() -> None:
    client = McpClient(MORTAL._replace(command=("sleep", "1000")))
    with pytest.raises(McpTimeoutError, match=r"no answer within 0\.2 s"):
        await client.ask(calling("number"), 0.2)
    await client.stop()


@pytest.mark.parametrize("host", ["169.254.169.254", "[::ffff:a9fe:a9fe]", "metadata"])
@pytest.mark.parametrize("transport", ["http", "sse"])
async def test_a_metadata_service_is_never_asked(host: str, transport: Any) -> None:
    client = McpClient(ServerSpec(transport, url=f"http://{host}/x"))
    with pytest.raises(McpError, match="cloud metadata service"):
        await client.ask(calling("number"), WAIT_SECONDS)

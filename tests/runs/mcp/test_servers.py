"""MCP servers of a run: connected, used, reported, chosen and closed."""

import asyncio
import json
import sys
from base64 import urlsafe_b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from stringd.net import line_process, mcp_connection
from stringd.runs.mcp import connection, servers
from tests.net import mortal_server
from tests.requirements import proves
from tests.runs.support import (
    Json,
    RunsServer,
    Watcher,
    scripted,
    sequential,
    serving,
    strategy,
    wait_until,
)
from tests.support.daemon import WAIT_SECONDS, free_port

pytestmark = pytest.mark.anyio

PROGRAM = str(Path(__file__).with_name("a_server.py"))
STDIO: Json = {"transport": "stdio", "command": sys.executable, "args": [PROGRAM]}


def name(server: str, tool: str) -> str:
    parts = (urlsafe_b64encode(each.encode()).decode().rstrip("=") for each in (server, tool))
    return "mcp__" + "__".join(parts)


def calling(server: str, tool: str, args: Json, **servers: Json) -> Json:
    asked = {"tools": [{"name": name(server, tool), "args": args}]}
    source = strategy(sequential("a"), a={**scripted(asked, "end"), "mcpServers": [server]})
    return {**source, "mcpServers": servers} if servers else source


def tool_events(messages: list[Json]) -> list[Json]:
    events = [m["event"] for m in messages if m["type"] == "agent_streaming"]
    return [e for e in events if e["type"] in ("tool-call", "tool-result")]


async def prepare(watcher: Watcher, path: Path, run_id: str = "r") -> Json:
    return await watcher.ask("prepare_run", runId=run_id, strategyPath=str(path))


@proves("RUN-48")
async def test_a_tool_of_a_stdio_server_is_called_and_shown_with_its_origin(
    server: RunsServer, watcher: Watcher
) -> None:
    path = server.own(calling("calc", "add", {"a": 2, "b": 3}, calc=STDIO))
    prepared = await prepare(watcher, path)
    assert prepared["mcpServers"] == [
        {
            "id": "calc",
            "source": "strategy",
            "transport": "stdio",
            "enabled": True,
            "enabledByDefault": True,
            "connected": True,
            "toolCount": 4,
            "assignedAgents": ["a"],
            "trusted": True,
        }
    ]
    await watcher.send("start_run", runId="r")
    called, result = tool_events(await watcher.until("strategy_completed"))
    assert called["mcp"] == result["mcp"] == {"serverId": "calc", "toolName": "add"}
    assert (result["output"], result["status"]) == ("5", "completed")
    selection = json.loads((server.directory / "data/runs/r.config.json").read_text("utf-8"))
    assert selection == {"enabledMcpServerIds": ["calc"]}


async def test_a_tool_that_throws_is_an_error_of_the_call(
    server: RunsServer, watcher: Watcher
) -> None:
    await prepare(watcher, server.own(calling("calc", "fail", {}, calc=STDIO)))
    await watcher.send("start_run", runId="r")
    _, result = tool_events(await watcher.until("strategy_completed"))
    assert (result["status"], result["output"]) == ("error", "")
    assert "fail" in result["error"]


@pytest.mark.parametrize(
    ("definition", "problem"),
    [
        ({"transport": "stdio", "command": "/no/such/program-secret"}, "The command was not found"),
        ({"transport": "stdio", "command": "false"}, "Could not connect"),
        ({"transport": "http", "url": "http://127.0.0.1:9/secret"}, "Could not connect"),
        (
            {"transport": "http", "url": {"env": "NO_SUCH_VARIABLE_HERE"}},
            "Missing environment variable: NO_SUCH_VARIABLE_HERE",
        ),
    ],
)
async def test_a_server_that_does_not_start_fails_nothing(
    server: RunsServer, watcher: Watcher, definition: Json, problem: str
) -> None:
    prepared = await prepare(watcher, server.own(calling("x", "add", {}, x=definition)))
    status = prepared["mcpServers"][0]
    assert status["connected"] is False
    assert status["error"].startswith(problem)
    assert "secret" not in json.dumps(status)
    await watcher.send("start_run", runId="r")
    _, result = tool_events(await watcher.until("strategy_completed"))
    assert result["status"] == "error"
    assert "not available" in result["error"]


async def test_an_unknown_server_fails_the_preparation(
    server: RunsServer, watcher: Watcher
) -> None:
    answer = await prepare(watcher, server.own(calling("nobody", "add", {})))
    assert answer["code"] == "PREPARE_FAILED"
    assert answer["message"] == 'Agent "a" references unknown MCP server "nobody".'


async def test_shared_servers_are_off_until_someone_turns_them_on(
    server: RunsServer, watcher: Watcher
) -> None:
    folder = server.directory / ".stringd"
    folder.mkdir()
    (folder / "mcp.json").write_text(json.dumps({"mcpServers": {"calc": STDIO}}), "utf-8")
    server.trust()
    path = server.own(calling("calc", "add", {"a": 1, "b": 1}))
    status = (await prepare(watcher, path))["mcpServers"][0]
    assert (status["source"], status["enabled"]) == ("workspace", False)
    assert "connected" not in status
    changed = await watcher.ask(
        "update_mcp_server", serverId="calc", enabled=True, scope="run", runId="r"
    )
    assert changed["servers"][0]["enabled"] is True
    await watcher.send("stop_run", runId="r")
    changed = await watcher.ask("update_mcp_server", serverId="calc", enabled=True, scope="default")
    assert changed["servers"][0]["enabledByDefault"] is True
    kept = json.loads((folder / "mcp.json").read_text("utf-8"))
    assert kept["mcpServers"]["calc"]["enabledByDefault"] is True
    changed = await prepare(watcher, path, "r2")
    assert changed["message"].startswith(f"{folder / 'mcp.json'} has changed since you trusted it")
    server.trust()
    status = (await prepare(watcher, path, "r2"))["mcpServers"][0]
    assert (status["enabled"], status["connected"]) == (True, True)
    listed = await watcher.ask("list_mcp_servers", runId="r2")
    assert listed["servers"] == [status]


async def test_update_refuses_what_it_cannot_change(server: RunsServer, watcher: Watcher) -> None:
    path = server.own(calling("calc", "add", {}, calc=STDIO))
    for fields in (
        {"serverId": "nobody", "scope": "default"},
        {"serverId": "calc", "scope": "default", "strategyPath": str(path)},
        {"serverId": "calc", "scope": "run", "strategyPath": str(path)},
    ):
        answer = await watcher.ask("update_mcp_server", enabled=True, **fields)
        assert answer["code"] == "MCP_UPDATE_FAILED"
    (server.directory / ".stringd").mkdir()
    (server.directory / ".stringd" / "mcp.json").write_text("{", "utf-8")
    assert (await watcher.ask("list_mcp_servers"))["servers"] == []
    server.trust()
    assert (await watcher.ask("list_mcp_servers"))["code"] == "MCP_LIST_FAILED"


async def test_a_run_id_that_is_no_file_name_reaches_no_file(
    server: RunsServer, watcher: Watcher
) -> None:
    shared = server.directory / "data" / "mcp.json"
    shared.parent.mkdir(exist_ok=True)
    shared.write_text(json.dumps({"mcpServers": {"calc": STDIO}}), "utf-8")
    fields = {"serverId": "calc", "enabled": True, "scope": "run", "runId": "../../out"}
    assert (await watcher.ask("update_mcp_server", **fields))["code"] == "MCP_UPDATE_FAILED"
    assert not (server.directory / "out.config.json").exists()
    listed = await watcher.ask("list_mcp_servers", runId="../../out")
    assert listed["code"] == "MCP_LIST_FAILED"


async def test_connections_end_with_the_run(server: RunsServer, watcher: Watcher) -> None:
    source = calling("calc", "where", {}, calc=STDIO)
    await prepare(watcher, server.own(source))
    tasks = [task for task in asyncio.all_tasks() if task.get_name() == "mcp calc"]
    assert len(tasks) == 1
    await watcher.send("start_run", runId="r")
    _, result = tool_events(await watcher.until("strategy_completed"))
    assert result["output"] == str(server.directory)
    await wait_until(tasks[0].done)


@asynccontextmanager
async def http_server(transport: str = "http") -> AsyncIterator[str]:
    port = free_port()
    process = await asyncio.create_subprocess_exec(
        sys.executable, PROGRAM, transport, str(port), stderr=asyncio.subprocess.PIPE
    )
    assert process.stderr is not None
    try:
        async with asyncio.timeout(WAIT_SECONDS):
            while b"running on" not in await process.stderr.readline():
                pass
        yield f"http://127.0.0.1:{port}/{'mcp' if transport == 'http' else 'sse'}"
    finally:
        process.kill()
        await process.communicate()


@proves("RUN-48")
@pytest.mark.parametrize("transport", ["http", "sse"])
async def test_a_tool_of_an_http_server_is_called(
    server: RunsServer, watcher: Watcher, transport: str
) -> None:
    async with http_server(transport) as url:
        definition = {"transport": transport, "url": url, "headers": {"X-Test": "1"}}
        source = calling("web", "add", {"a": 20, "b": 22}, web=definition)
        prepared = await prepare(watcher, server.own(source))
        status = prepared["mcpServers"][0]
        assert (status["transport"], status["connected"]) == (transport, True), status
        assert status["toolCount"] == 4
        await watcher.send("start_run", runId="r")
        _, result = tool_events(await watcher.until("strategy_completed"))
        assert result["output"] == "42"


@pytest.mark.parametrize("transport", ["http", "sse", "stdio"])
async def test_stopping_ends_a_call_that_is_still_running(
    server: RunsServer, watcher: Watcher, transport: str
) -> None:
    async with http_server("http" if transport == "stdio" else transport) as url:
        definition = STDIO if transport == "stdio" else {"transport": transport, "url": url}
        await prepare(watcher, server.own(calling("x", "slow", {}, x=definition)))
        tasks = [task for task in asyncio.all_tasks() if task.get_name() == "mcp x"]
        await watcher.send("start_run", runId="r")
        while (await watcher.receive()).get("event", {}).get("type") != "tool-call":
            pass
        await watcher.send("stop_run", runId="r")
        assert (await watcher.ended())["error"]["code"] == "CANCELLED"
        await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), WAIT_SECONDS)


@pytest.mark.parametrize("transport", ["http", "sse"])
async def test_a_server_that_goes_away_is_an_error_of_the_call(
    server: RunsServer, watcher: Watcher, transport: str
) -> None:
    async with http_server(transport) as url:
        definition = {"transport": transport, "url": url}
        await prepare(watcher, server.own(calling("x", "add", {"a": 1, "b": 2}, x=definition)))
    await watcher.send("start_run", runId="r")
    _, result = tool_events(await watcher.until("strategy_completed"))
    assert (result["status"], result["output"]) == ("error", "")
    assert "MCP tool add failed" in result["error"]


async def test_a_server_that_died_is_started_again_with_the_next_call(
    server: RunsServer, watcher: Watcher
) -> None:
    program = str(mortal_server.__file__)
    definition: Json = {"transport": "stdio", "command": sys.executable, "args": [program]}
    turns = [{"tools": [{"name": name("m", tool), "args": {}}]} for tool in ("number", "die")]
    agent = {**scripted(*turns, turns[0], "end"), "mcpServers": ["m"]}
    source = {**strategy(sequential("a"), a=agent), "mcpServers": {"m": definition}}
    await prepare(watcher, server.own(source))
    await watcher.send("start_run", runId="r")
    events = tool_events(await watcher.until("strategy_completed"))
    first, died, again = [event for event in events if event["type"] == "tool-result"]
    assert died["error"] == (
        "MCP tool die failed: Connection closed. The server is started again with the next call."
    )
    assert (first["status"], again["status"]) == ("completed", "completed")
    assert first["output"] != again["output"]


async def test_headers_from_the_environment_reach_the_server(
    server: RunsServer, watcher: Watcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MCP_TEST_TOKEN", "token-from-env")
    heard: list[bytes] = []

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n")
        writer.close()

    listener = await asyncio.start_server(refuse, "127.0.0.1", 0)
    port = listener.sockets[0].getsockname()[1]
    for transport in ("http", "sse"):
        definition: Json = {
            "transport": transport,
            "url": f"http://127.0.0.1:{port}/x",
            "headers": {"Authorization": {"env": "MCP_TEST_TOKEN"}},
        }
        source = calling("x", "add", {}, x=definition)
        status = (await prepare(watcher, server.own(source), transport))["mcpServers"][0]
        assert status["connected"] is False
        assert "token-from-env" not in json.dumps(status)
    listener.close()
    assert all(b"token-from-env" in each for each in heard)
    assert len(heard) >= 2


async def test_stopping_does_not_wait_for_a_server_that_never_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # None of these times is over within the test.
    for module, limit in (
        (mcp_connection, "START_SECONDS"),
        (connection, "START_SECONDS"),
        (line_process, "GRACE_SECONDS"),
        (servers, "_CLOSE_SECONDS"),
    ):
        monkeypatch.setattr(module, limit, 10 * WAIT_SECONDS)
    async with asyncio.timeout(WAIT_SECONDS), serving(tmp_path) as server:
        watcher = await server.watcher()
        started = tmp_path / "started"
        line = f"trap '' TERM; touch {started}; sleep 1000"
        mute: Json = {"transport": "stdio", "command": "sh", "args": ["-c", line]}
        options: Json = {"enabledByDefault": True, "cwd": str(tmp_path), "sandbox": "open"}
        definitions = {"mcpServers": {"mute": mute | options}}
        agent = {**scripted("end"), "mcpServers": ["mute"]}
        path = server.own(strategy(sequential("a"), a=agent))
        (tmp_path / "data" / "mcp.json").write_text(json.dumps(definitions), "utf-8")
        await watcher.send("prepare_run", runId="r", strategyPath=str(path))
        await wait_until(started.exists)
        await server.service.stop()

"""The first answers of `stringd mcp` need no daemon, and are the daemon's own."""

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from stringd.client.mcp import sse_data
from stringd.mcp.catalog import NAMES
from stringd.mcp.greeting import HANDSHAKE_VERSIONS, META_VERSION, greeting
from tests.mcp.support import Pipe
from tests.support.daemon import Daemon, free_port
from tests.support.http import request

CLIENT = {"name": "bare", "version": "1"}


def ask(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}


def of_daemon(daemon: Daemon, message: dict[str, Any], query: str = "") -> Any:
    accepted = {"Accept": "application/json, text/event-stream"}
    answer = request(daemon.port, "POST", f"/mcp{query}", message, accepted)
    if answer.headers["content-type"].startswith("application/json"):
        return answer.json["result"]
    return json.loads(next(sse_data([answer.body])))["result"]


@pytest.mark.parametrize("version", [*HANDSHAKE_VERSIONS, "1999-01-01", "2026-07-28"])
def test_the_handshake_is_that_of_the_daemon(daemon: Daemon, version: str) -> None:
    message = ask("initialize", protocolVersion=version, capabilities={}, clientInfo=CLIENT)
    theirs = of_daemon(daemon, message)
    theirs["capabilities"]["resources"]["listChanged"] = True
    assert greeting(message, NAMES) == theirs


@pytest.mark.parametrize("tools", [NAMES, ("string",), ("wait", "string")], ids=",".join)
def test_the_tools_are_those_of_the_daemon(daemon: Daemon, tools: tuple[str, ...]) -> None:
    message = ask("tools/list")
    query = f"?tools={','.join(tools)}"
    assert greeting(message, tools) == of_daemon(daemon, message, query)


@pytest.mark.parametrize(
    "message",
    [
        ask("tools/call", name="string", arguments={"cmd": "/info"}),
        ask("resources/list"),
        ask("ping"),
        ask("tools/list", cursor="2"),
        ask("tools/list", _meta={META_VERSION: "2026-07-28"}),
        ask("tools/list", _meta="no"),
        {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": []},
        ask("initialize"),
        ask("initialize", protocolVersion=1, capabilities={}, clientInfo=CLIENT),
        ask("initialize", protocolVersion="2025-06-18", capabilities=[], clientInfo=CLIENT),
        ask("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo="x"),
        ask("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo={"name": 1}),
    ],
    ids=lambda message: json.dumps(message)[:90],
)
def test_everything_else_is_for_the_daemon(message: dict[str, Any]) -> None:
    assert greeting(message, NAMES) is None


def test_a_client_has_its_tools_although_no_daemon_can_start(tmp_path: Path) -> None:
    daemon = Daemon(tmp_path)
    (tmp_path / "data").write_text("not a directory")
    with Pipe(daemon, "--port", str(free_port())) as pipe:
        assert pipe.initialize()["serverInfo"]["name"] == "string"
        listed = pipe.call("tools/list")["result"]["tools"]
        assert [tool["name"] for tool in listed] == list(NAMES)
        called = pipe.call("tools/call", name="string", arguments={"cmd": "/info"})
        assert "failed to start stringd" in called["error"]["message"]
        _, errors = pipe.end()
    assert errors.startswith(b"stringd: failed to start stringd")


def test_the_first_call_finds_the_daemon_that_was_started_meanwhile(tmp_path: Path) -> None:
    from stringd.client.daemon import stop

    daemon = Daemon(tmp_path)
    with Pipe(daemon) as pipe:
        try:
            pipe.initialize()
            called = pipe.call("tools/call", name="string", arguments={"cmd": "/info"})
            assert not called["result"].get("isError")
        finally:
            assert stop(daemon.port)


def test_resources_are_listed_once_the_daemon_can_be_asked(tmp_path: Path) -> None:
    with Daemon(tmp_path) as daemon, Pipe(daemon) as pipe:
        assert daemon.process is not None
        daemon.process.send_signal(signal.SIGSTOP)
        try:
            pipe.initialize()
            assert pipe.call("resources/list")["result"] == {"resources": []}
        finally:
            daemon.process.send_signal(signal.SIGCONT)
        assert pipe.receive() == {
            "jsonrpc": "2.0",
            "method": "notifications/resources/list_changed",
        }
        opened = {"topic": "file:main", "cmd": "/open ./page.md"}
        (tmp_path / "page.md").write_text("# Page\n")
        assert not pipe.call("tools/call", name="string", arguments=opened)["result"].get("isError")
        listed = pipe.call("resources/list")["result"]["resources"]
        assert [each["uri"] for each in listed] == ["string://topics/file:main"]

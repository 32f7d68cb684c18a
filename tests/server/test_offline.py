"""`STRINGD_HTTP_LOADING=0`: no text makes the daemon connect to anything, however it asks."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest
import yaml
from websockets.sync.client import connect

from stringd.documents import parse
from stringd.net.fetch import OFFLINE
from stringd.runtime.packages.install import Origin, Package, install_files
from stringd.runtime.packages.installed import MAIN_FILE
from stringd.runtime.packages.mcp_app import MOUNT_FILE, Mount, ToolInfo, document_of
from tests.runs.support import TERMINAL, Json, scripted, sequential, strategy
from tests.support.daemon import Daemon
from tests.support.person import Person
from tests.support.web import WebServer

DISABLED = "HTTP loading is disabled"
SWITCH = "STRINGD_HTTP_LOADING=0"


class Try(NamedTuple):
    """A page in the home, the commands that use it, and what the last reply must say."""

    page: str
    commands: tuple[str, ...]
    says: str


TRIES = {
    "a page": Try("", ("/open {url}",), DISABLED),
    "a tab": Try("", ("/open --tab {url}",), DISABLED),
    "a link": Try("[@far Far]({url})\n", ("/open page.md", "/open @far"), DISABLED),
    "a menu": Try("[!nav:far]({url})\n", ("/open page.md", "/nav far"), "Menu far is empty."),
    "an include": Try("[!include:far]({url})\n", ("/open page.md",), "it could not be fetched"),
    "an action": Try("```act.ask\nGET {url}\n```\n", ("/open page.md", "/act.ask"), SWITCH),
    "an action that sends": Try(
        "```act.ask\nPOST {url}\n\nhello\n```\n", ("/open page.md", "/act.ask"), SWITCH
    ),
    "an app": Try("", ("/install {url}",), SWITCH),
    "an MCP server": Try("", ("/install --mcp more {url}",), SWITCH),
    "a mounted MCP server": Try("", ("/open app:far", "/act.ask"), SWITCH),
}


@pytest.fixture(scope="module")
def web() -> Iterator[WebServer]:
    with WebServer() as server:
        yield server


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory, web: WebServer) -> Iterator[Daemon]:
    offline = Daemon(tmp_path_factory.mktemp("offline"), STRINGD_HTTP_LOADING="0")
    mount = Mount(url=f"{web.url}/mcp", tools={"ask": ToolInfo("ask", "Asks.", {})})
    text = document_of("far", mount)
    package = Package("far", "app", Origin("far", "mcp far", "--mcp far"), parse(text))
    files = {MAIN_FILE: text.encode(), MOUNT_FILE: msgspec.json.encode(mount)}
    install_files(str(offline.home), package, files)
    with offline:
        yield offline


@pytest.mark.parametrize("name", TRIES)
def test_a_topic_connects_to_nothing(daemon: Daemon, web: WebServer, name: str) -> None:
    tried = TRIES[name]
    person = Person(daemon.port, "u", daemon.home)
    person.put("page.md", "# Page\n\n" + tried.page.replace("{url}", f"{web.url}/p"))
    topic = "app:far" if "mounted" in name else f"file:{name.replace(' ', '-')}"
    said = [person.says(command.format(url=f"{web.url}/p"), topic) for command in tried.commands]
    assert tried.says in said[-1].text, said[-1].text
    assert web.asked == []


def test_a_run_connects_to_nothing(daemon: Daemon, web: WebServer, tmp_path: Path) -> None:
    url = f"{web.url}/p"
    calls = [("webfetch", {"url": url}), ("string", {"topic": "x", "command": f"/open {url}"})]
    replies = [{"tools": [{"name": name, "args": args}]} for name, args in calls]
    agent: Json = {**scripted(*replies, "end"), "tools": ["webfetch", "string"]}
    source = strategy(sequential("a"), a={**agent, "mcpServers": ["web", "events"]})
    source["mcpServers"] = {
        "web": {"transport": "http", "url": url},
        "events": {"transport": "sse", "url": url},
    }
    # In the data directory, where the owner's own strategies are: a path alone brings no servers.
    path = daemon.data_dir / "strategies" / "offline.yaml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(yaml.safe_dump(source), "utf-8")
    with connect(f"ws://127.0.0.1:{daemon.port}/ws", proxy=None) as socket:
        ask = {"type": "prepare_run", "runId": "r", "strategyPath": str(path)}
        socket.send(json.dumps({**ask, "cwd": str(tmp_path)}))
        prepared = json.loads(socket.recv())
        assert [each["error"] for each in prepared["mcpServers"]] == [OFFLINE, OFFLINE]
        socket.send(json.dumps({"type": "start_run", "runId": "r", "input": "go"}))
        messages: list[Json] = []
        while not messages or messages[-1]["type"] not in TERMINAL:
            messages.append(json.loads(socket.recv()))
    events = [each["event"] for each in messages if each["type"] == "agent_streaming"]
    results = [
        each.get("error") or each["output"] for each in events if "tool-result" in each["type"]
    ]
    assert SWITCH in results[0], results
    assert DISABLED in results[1], results
    assert web.asked == []

"""The ways a text of others reaches a daemon: files, web pages, actions, MCP servers, runs."""

import asyncio
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import yaml
from websockets.asyncio.client import connect

from stringd.client.daemon import register
from stringd.client.exec import json_object
from stringd.client.http import DaemonConnection
from tests.runs.support import TERMINAL, Watcher, scripted, sequential, strategy
from tests.support.freeze import server as mcp_server
from tests.support.freeze.readers import encoded
from tests.support.web import Asked, Reply, WebServer

PAGE = """# Actions

```act.fetch
GET {url}/plain
```

```act.shown
GET {url}/plain
```

```act.shown.response
{{Response.body}}
```

```act.run
CLI cat {path}
```
"""
WAYS = (
    "file",
    "page of Markdown",
    "page of HTML",
    "answer of an HTTP action",
    "answer in a template",
    "answer of a command",
    "result of an MCP tool",
    "page of an MCP server",
    "strategy",
    "tool results of a run",
)


class HostileWays:
    """One user of a daemon, to whom the same text comes by every way."""

    def __init__(self, port: int, home: Path, web: WebServer) -> None:
        self._port = port
        self._connection = DaemonConnection(port)
        self._file = home / "hostile.md"
        self._strategy = home / "hostile.yaml"
        self._home = home
        self._web = web
        self._runs = 0
        web.answer = self._served
        register(self._connection, "freeze", str(home))
        self.text = ""
        self._file.write_text("", "utf-8")
        page = PAGE.format(url=web.url, path=self._file)
        (home / "actions.md").write_text(page, "utf-8")
        program = f"{sys.executable} {mcp_server.__file__} {self._file}"
        self._says(f"/install --mcp hostile -- {program}")
        self._says("/open", "app:hostile")
        self._says("/open actions.md", "file:actions")
        read = {"name": "read_file", "args": {"path": "hostile.md"}}
        shown = {"name": "run_command", "args": {"command": "cat hostile.md"}}
        agent = {
            **scripted({"tools": [read, shown]}, "done"),
            "tools": ["read_file", "run_command"],
        }
        source = strategy(sequential("a"), a=agent)
        self._reading = home / "reading.yaml"
        self._reading.write_text(yaml.safe_dump(source), "utf-8")

    def close(self) -> None:
        self._connection.close()

    def bring(self, text: str) -> None:
        """The text that every way brings from now on."""
        self.text = text
        self._file.write_bytes(encoded(text))
        self._strategy.write_bytes(encoded(text))

    def go(self, way: str) -> str:
        """What the daemon says to it; whatever that is."""
        found: dict[str, Callable[[], str]] = {
            "file": lambda: self._says("/open hostile.md"),
            "page of Markdown": lambda: self._says(f"/open {self._web.url}/markdown"),
            "page of HTML": lambda: self._says(f"/open {self._web.url}/html"),
            "answer of an HTTP action": lambda: self._says("/act.fetch", "file:actions"),
            "answer in a template": lambda: self._says("/act.shown", "file:actions"),
            "answer of a command": lambda: self._says("/act.run", "file:actions"),
            "result of an MCP tool": lambda: self._says("/act.read", "app:hostile"),
            "page of an MCP server": lambda: self._says(
                "/open mcp://hostile/hostile://one", "app:hostile:pages"
            ),
            "strategy": lambda: asyncio.run(self._prepare(self._strategy)),
            "tool results of a run": lambda: asyncio.run(self._run(self._reading)),
        }
        return found[way]()

    def _served(self, asked: Asked) -> Reply:
        kinds = {"/markdown": "text/markdown", "/html": "text/html", "/plain": "text/plain"}
        return Reply(encoded(self.text), kinds[asked.target])

    def _says(self, command: str, topic: str = "file:freeze") -> str:
        body = json_object(cmd=command, topic=topic)
        reply = self._connection.request("POST", "/exec", body, {"X-User-Id": "freeze"})
        return reply.body.decode("utf-8", "replace")

    async def _prepare(self, path: Path) -> str:
        async with self._watched() as watcher:
            return json.dumps(await watcher.ask("prepare_run", **self._fields(path)))

    async def _run(self, path: Path) -> str:
        async with self._watched() as watcher:
            fields = self._fields(path)
            prepared = await watcher.ask("prepare_run", **fields)
            if prepared["type"] != "run_prepared":
                return json.dumps(prepared)
            await watcher.send("start_run", runId=fields["runId"], input="")
            while True:
                message = await watcher.receive()
                if message["type"] in TERMINAL:
                    return json.dumps(message)

    def _fields(self, path: Path) -> dict[str, str]:
        self._runs += 1
        return {"runId": f"r{self._runs}", "strategyPath": str(path), "cwd": str(self._home)}

    def _watched(self) -> "_Watched":
        return _Watched(f"ws://127.0.0.1:{self._port}/ws")


class _Watched:
    def __init__(self, url: str) -> None:
        self._connecting = connect(url, max_queue=None, max_size=None, proxy=None)

    async def __aenter__(self) -> Watcher:
        return Watcher(await self._connecting.__aenter__())

    async def __aexit__(self, *raised: object) -> None:
        await self._connecting.__aexit__(None, None, None)


@contextmanager
def hostile_ways(port: int, home: Path) -> Iterator[HostileWays]:
    with WebServer() as web:
        ways = HostileWays(port, home, web)
        try:
            yield ways
        finally:
            ways.close()

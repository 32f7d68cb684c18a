"""Things to look at: runs that ask, fail and end, topics, an audit log."""

import json
from itertools import count
from pathlib import Path
from typing import Any

import yaml
from playwright.sync_api import BrowserContext, ConsoleMessage, Page
from websockets.sync.client import connect

from tests.runs.support import Json, scripted, sequential, strategy
from tests.support.daemon import WAIT_SECONDS, Daemon
from tests.support.http import User, request

_numbers = count(1)


class Shown:
    """A page of the browser, and everything it complains about."""

    def __init__(self, context: BrowserContext) -> None:
        self.page: Page = context.new_page()
        self.complaints: list[str] = []
        self.page.on("console", self._console)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def _console(self, message: ConsoleMessage) -> None:
        # A browser says so itself when a daemon that was stopped does not answer.
        if message.type == "error" and "net::ERR" not in message.text:
            self.complaints.append(message.text)


class World:
    """A daemon to fill."""

    def __init__(self, daemon: Daemon) -> None:
        self.daemon = daemon
        self.user = User(daemon.port, "default", daemon.home)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.daemon.port}/ui/"

    def run(self, source: Json, text: str = "", *, run_id: str = "", until: str = "") -> str:
        """Start a run and return its id once it has said what it is waited for."""
        path = self.daemon.directory / f"strategy-{next(_numbers)}.yaml"
        path.write_text(yaml.safe_dump(source, sort_keys=False), "utf-8")
        with connect(f"ws://127.0.0.1:{self.daemon.port}/ws", max_size=None, proxy=None) as socket:
            named = {"runId": run_id} if run_id else {}
            prepare = {"type": "prepare_run", "strategyPath": str(path), **named}
            socket.send(json.dumps({**prepare, "cwd": str(self.daemon.home)}))
            prepared = _next(socket, "run_prepared", "error")
            assert prepared["type"] == "run_prepared", prepared
            found = str(prepared["runId"])
            socket.send(json.dumps({"type": "start_run", "runId": found, "input": text}))
            _next(socket, until or "strategy_completed")
        return found

    def asks_permission(self, name: str = "Fix", command: str = "make publish", **more: Any) -> str:
        """A run that waits for a permission."""
        call = {"name": "run_command", "args": {"command": command, "network": True}}
        agent = {**scripted({"tools": [call]}, "ended"), "tools": ["run_command"]}
        source = {**strategy(sequential("coder"), coder=agent), "name": name, **more}
        return self.run(source, until="request_permission")

    def asks_question(self, question: str) -> str:
        call = {"name": "ask_question", "args": {"question": question}}
        agent = {**scripted({"tools": [call]}, "ended"), "tools": ["ask_question"]}
        source = {**strategy(sequential("critic"), critic=agent), "name": "Research"}
        return self.run(source, until="request_question")

    def fails(self, error: str, name: str = "Nightly") -> str:
        source = {**strategy(sequential("a"), a=scripted({"error": error})), "name": name}
        return self.run(source, until="strategy_error")

    def completes(self, *replies: Any, name: str = "Review", run_id: str = "") -> str:
        agent = {**scripted(*replies), "tools": ["create_file", "read_file"]}
        source = {**strategy(sequential("a"), a=agent), "name": name}
        return self.run(source, run_id=run_id)

    def waiting(self) -> list[Json]:
        found: list[Json] = request(self.daemon.port, "GET", "/overview").json["waiting"]
        return found

    def timeline(self, run_id: str) -> str:
        return (Path(self.daemon.data_dir) / "runs" / f"{run_id}.jsonl").read_text("utf-8")


def fits(page: Page) -> None:
    """Wait until nothing is wider than the window; what is drawn for its width follows it."""
    page.wait_for_function("() => document.documentElement.scrollWidth <= innerWidth")


def _next(socket: Any, *types: str) -> Json:
    while True:
        message: Json = json.loads(socket.recv(timeout=WAIT_SECONDS))
        if message["type"] in types:
            return message

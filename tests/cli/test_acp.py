"""`stringd acp`: an editor on standard input and output, strategies behind it."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.daemon import WAIT_SECONDS, Daemon

Json = dict[str, Any]


class Editor:
    """Speaks to the program as an editor does; keeps every update."""

    def __init__(self, daemon: Daemon, folder: Path) -> None:
        self.folder = folder
        self.updates: list[Json] = []
        self.answer: Callable[[Json], Json] = lambda _request: {"outcome": {"outcome": "cancelled"}}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "stringd", "acp"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**daemon.child_environment(), "STRINGD_PORT": str(daemon.port)},
            cwd=folder,
        )
        self._ids = 0

    def send(self, method: str, /, **params: Any) -> int:
        self._ids += 1
        self._write({"id": self._ids, "method": method, "params": params})
        return self._ids

    def notify(self, method: str, /, **params: Any) -> None:
        self._write({"method": method, "params": params})

    def wait(self, number: int) -> Json:
        """The answer to a request; what comes before it is kept or answered."""
        while True:
            message = self.read()
            if message.get("id") == number and "method" not in message:
                return message

    def read(self) -> Json:
        assert self._process.stdout is not None
        message: Json = json.loads(self._process.stdout.readline())
        if message.get("method") == "session/update":
            self.updates.append(message["params"]["update"])
        elif message.get("method") == "session/request_permission":
            self._write({"id": message["id"], "result": self.answer(message["params"])})
        return message

    def ask(self, method: str, /, **params: Any) -> Any:
        return self.wait(self.send(method, **params))["result"]

    def said(self) -> str:
        chunks = (each for each in self.updates if each["sessionUpdate"] == "agent_message_chunk")
        return "".join(each["content"]["text"] for each in chunks)

    def session(self, strategy: Json | str) -> str:
        self.ask("initialize", protocolVersion=1, clientCapabilities={})
        name = self.ask("session/new", cwd=str(self.folder), mcpServers=[])["sessionId"]
        if not isinstance(strategy, str):
            path = self.folder / "strategy.yaml"
            path.write_text(yaml.safe_dump(strategy))
            strategy = str(path)
        self.ask("session/set_mode", sessionId=name, modeId=strategy)
        return str(name)

    def prompt(self, session: str, text: str) -> int:
        content = [{"type": "text", "text": text}]
        return self.send("session/prompt", sessionId=session, prompt=content)

    def close(self) -> int:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        code = self._process.wait(WAIT_SECONDS)
        self._process.stdout.close()
        return code

    def _write(self, message: Json) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self._process.stdin.flush()


@pytest.fixture
def editor(daemon: Daemon, tmp_path: Path) -> Iterator[Editor]:
    found = Editor(daemon, tmp_path)
    yield found
    assert found.close() == 0


def flow(*steps: str, **agents: Json) -> Json:
    tree = {"name": "F", "type": "sequential", "steps": [{"agent": each} for each in steps]}
    return {"name": "S", "version": "1.0", "agents": agents, "flow": tree}


def scripted(*replies: Any, **more: Any) -> Json:
    options = {"demo": {"script": list(replies)}}
    return {"model": "demo/script", "providerOptions": options, **more}


def test_an_editor_is_told_what_there_is(editor: Editor) -> None:
    told = editor.ask("initialize", protocolVersion=1, clientCapabilities={})
    assert (told["protocolVersion"], told["agentInfo"]["name"]) == (1, "stringd")
    made = editor.ask("session/new", cwd=str(editor.folder), mcpServers=[])
    assert "hello" in [each["id"] for each in made["modes"]["availableModes"]]
    unknown = editor.wait(editor.send("session/frobnicate"))
    assert unknown["error"]["code"] == -32601


def test_a_prompt_is_a_run_and_the_next_one_continues_it(editor: Editor) -> None:
    thinking = {"text": "one", "thinking": "hm"}
    session = editor.session(flow("a", "b", a=scripted(thinking, "two"), b={"model": "demo/echo"}))
    assert editor.wait(editor.prompt(session, "go"))["result"] == {"stopReason": "end_turn"}
    assert editor.said() == "\n\n**a**\n\none\n\n**b**\n\none"
    thoughts = [each for each in editor.updates if each["sessionUpdate"] == "agent_thought_chunk"]
    assert "".join(each["content"]["text"] for each in thoughts) == "hm"
    plans = [each["entries"] for each in editor.updates if each["sessionUpdate"] == "plan"]
    assert [each["status"] for each in plans[-1]] == ["completed", "completed"]
    editor.updates.clear()
    editor.wait(editor.prompt(session, "again"))
    assert editor.said() == "\n\n**a**\n\ntwo\n\n**b**\n\ntwo"


@pytest.mark.parametrize(
    ("option", "made"), [("allow", True), ("deny", False), ("cancelled", False)]
)
def test_permissions_are_asked_in_the_editor(editor: Editor, option: str, made: bool) -> None:
    outside = editor.folder.parent / f"outside-{option}.txt"
    call = {"name": "create_file", "args": {"path": str(outside), "content": "x"}}
    asked: list[Json] = []

    def answer(request: Json) -> Json:
        asked.append(request)
        if option == "cancelled":
            return {"outcome": {"outcome": "cancelled"}}
        return {"outcome": {"outcome": "selected", "optionId": option}}

    editor.answer = answer
    agent = scripted({"tools": [call]}, "done", tools=["create_file"])
    session = editor.session(flow("a", a=agent))
    assert editor.wait(editor.prompt(session, "go"))["result"] == {"stopReason": "end_turn"}
    assert asked[0]["toolCall"]["title"] == str(outside)
    kinds = [each["kind"] for each in asked[0]["options"]]
    assert kinds == ["allow_once", "allow_always", "reject_once", "reject_always"]
    assert outside.exists() is made
    calls = [each for each in editor.updates if each["sessionUpdate"] == "tool_call"]
    assert (calls[0]["title"], calls[0]["kind"]) == ("create_file", "edit")


def test_a_question_is_answered_by_the_next_prompt(editor: Editor) -> None:
    session = editor.session(flow("you", "b", you={"type": "user"}, b={"model": "demo/echo"}))
    editor.wait(editor.prompt(session, ""))
    assert "you waits for a text" in editor.said()
    editor.updates.clear()
    assert editor.wait(editor.prompt(session, "blue"))["result"] == {"stopReason": "end_turn"}
    assert editor.said().endswith("blue")


def test_a_cancelled_turn_stops_its_run(editor: Editor) -> None:
    slow = scripted({"text": "a b c", "delayMs": 60_000})
    session = editor.session(flow("a", "b", a=scripted("first"), b=slow))
    number = editor.prompt(session, "go")
    while not editor.said().endswith("first"):
        editor.read()
    editor.notify("session/cancel", sessionId=session)
    assert editor.wait(number)["result"] == {"stopReason": "cancelled"}


def test_a_failed_run_is_an_error_with_its_words(editor: Editor) -> None:
    session = editor.session(flow("a", a=scripted({"error": "no money"})))
    assert "no money" in editor.wait(editor.prompt(session, "go"))["error"]["message"]

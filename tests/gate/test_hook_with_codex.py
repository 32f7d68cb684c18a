"""The hook inside a real Codex, whose model is a script. `make soak` installs it by npm."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from stringd.gate.decide import Event, KeyAnswer
from stringd.gate.hook_settings import install, write
from tests.gate.support import PATIENCE, Human, serving
from tests.gate.test_turns import until
from tests.support.machine import found

pytestmark = [
    pytest.mark.soak,
    pytest.mark.timeout(600),
    pytest.mark.skipif(found("tmux") is None, reason="tmux is not installed"),
]

VERSION = "0.169.0"
PLACE = Path(sys.prefix, f"codex-{VERSION}")
_CONFIG = """
model = "m"
model_provider = "script"
approval_policy = "on-request"
sandbox_mode = "read-only"
[model_providers.script]
name = "script"
base_url = "http://127.0.0.1:{port}/v1"
wire_api = "responses"
env_key = "SCRIPT_KEY"
[projects."{project}"]
trust_level = "trusted"
"""


@pytest.fixture(scope="module")
def codex() -> Path:
    """Codex, installed once."""
    program = PLACE / "node_modules" / ".bin" / "codex"
    if not program.exists():
        words = ["npm", "install", "--no-audit", "--no-fund", "--fetch-retries=1", "--prefix"]
        try:
            wanted = f"@openai/codex@{VERSION}"
            subprocess.run([*words, str(PLACE), wanted], check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError):
            pytest.skip("Codex could not be installed")
    return program


class _Model(BaseHTTPRequestHandler):
    """Asks for one command outside the sandbox, and is content with whatever becomes of it."""

    protocol_version = "HTTP/1.1"
    wanted = ""

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass

    def do_POST(self) -> None:
        asked = self.rfile.read(int(self.headers.get("content-length", 0)))
        given = {"cmd": self.wanted, "justification": "make a file"}
        given["sandbox_permissions"] = "require_escalated"
        item: dict[str, Any] = {"type": "function_call", "id": "f1", "call_id": "c1"}
        item |= {"name": "exec_command", "arguments": json.dumps(given)}
        if b"function_call_output" in asked:
            text = {"type": "output_text", "text": "Finished."}
            item = {"type": "message", "id": "m1", "role": "assistant", "content": [text]}
        usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
        events: list[dict[str, Any]] = [
            {"type": "response.created", "response": {"id": "r1"}},
            {"type": "response.output_item.done", "output_index": 0, "item": item},
            {"type": "response.completed", "response": {"id": "r1", "usage": usage}},
        ]
        lines = (f"event: {each['type']}\ndata: {json.dumps(each)}\n\n" for each in events)
        self._send("text/event-stream", "".join(lines).encode())

    def do_GET(self) -> None:
        self._send("application/json", b'{"models":[],"data":[]}')

    def _send(self, kind: str, body: bytes) -> None:
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Pane:
    """What Codex shows, in a tmux of its own: it asks its terminal questions that tmux answers."""

    def __init__(self, call: list[str]) -> None:
        self._call = call

    def shows(self, text: str) -> None:
        """Wait until the text is on the screen."""
        until(lambda: text in self._screen())

    def type(self, keys: str) -> None:
        subprocess.run([*self._call, "send-keys", keys], check=True)

    def _screen(self) -> str:
        words = [*self._call, "capture-pane", "-p"]
        return subprocess.run(words, capture_output=True, text=True, check=False).stdout


@contextmanager
def session(codex: Path, home: Path, socket: Path, canary: Path) -> Iterator[Pane]:
    """Codex, about to make a file, with our hook among its hooks."""
    project = home / "project"
    project.mkdir()
    model = type("Model", (_Model,), {"wanted": f"touch {canary}"})
    server = ThreadingHTTPServer(("127.0.0.1", 0), model)
    serving_it = threading.Thread(target=server.serve_forever)
    serving_it.start()
    (home / "config.toml").write_text(_CONFIG.format(port=server.server_port, project=project))
    write(install(home / "hooks.json", f"{sys.executable} -m stringd gate hook --agent codex"))
    env = {**os.environ, "TERM": "xterm-256color", "SCRIPT_KEY": "x"}
    env |= {"HOME": str(home), "CODEX_HOME": str(home), "STRINGD_GATE_SOCKET": str(socket)}
    env.pop("TMUX", None)
    call = ["tmux", "-S", str(socket.parent / "t"), "-f", "/dev/null"]
    window = ["new-session", "-d", "-x", "120", "-y", "40", "-c", str(project)]
    # A person would trust the hook with /hooks.
    program = [str(codex), "--dangerously-bypass-hook-trust", "make the file"]
    subprocess.run([*call, *window, *program], env=env, check=True)
    try:
        yield Pane(call)
    finally:
        subprocess.run([*call, "kill-server"], check=False)
        server.shutdown()
        server.server_close()
        serving_it.join(PATIENCE)


def test_a_yes_at_the_gate_lets_codex_continue(codex: Path, home: Path, tmp_path: Path) -> None:
    canary, human = tmp_path / "canary", Human()
    with serving(home, human) as desk, session(codex, tmp_path, desk.path, canary) as pane:
        pane.shows("Finished.")
    assert canary.exists()
    [question] = human.asked
    assert question.request.tool == "Bash"
    assert question.request.text == f"touch {canary}\n# make a file"
    assert question.peer.agent.startswith("codex (pid ")


def test_a_no_at_the_gate_denies_it(codex: Path, home: Path, tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    human = Human(lambda _: KeyAnswer(Event.NO, by="test", note="not here"))
    with serving(home, human) as desk, session(codex, tmp_path, desk.path, canary) as pane:
        pane.shows("Finished.")
    assert len(human.asked) == 1
    assert not canary.exists()


def test_without_a_gate_codex_asks_by_itself(codex: Path, home: Path, tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    with session(codex, tmp_path, home / "none.sock", canary) as pane:
        pane.shows("Yes, proceed")
        assert not canary.exists()
        pane.type("y")
        pane.shows("Finished.")
    assert canary.exists()

"""The hook inside a real Claude Code, whose model is a script. `make soak` installs it by npm."""

import json
import os
import re
import select
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from stringd.gate.decide import Event, KeyAnswer
from stringd.gate.hook_settings import install, write
from tests.gate.support import PATIENCE, Human, Terminal, serving
from tests.support.daemon import free_port

pytestmark = [pytest.mark.soak, pytest.mark.timeout(600)]

VERSION = "2.1.197"
PLACE = Path(sys.prefix, f"claude-code-{VERSION}")
ROOT = Path(__file__).parents[2]
KEY = "sk-ant-api03-" + "x" * 40


@pytest.fixture(scope="module")
def claude() -> Path:
    """Claude Code, installed once."""
    program = PLACE / "node_modules" / ".bin" / "claude"
    if not program.exists():
        words = ["npm", "install", "--no-audit", "--no-fund", "--fetch-retries=1", "--prefix"]
        wanted = f"@anthropic-ai/claude-code@{VERSION}"
        try:
            subprocess.run([*words, str(PLACE), wanted], check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError):
            pytest.skip("Claude Code could not be installed")
    return program


class _Model(BaseHTTPRequestHandler):
    """Asks for one command, and is content with whatever becomes of it."""

    protocol_version = "HTTP/1.1"
    wanted = ""

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))) or b"{}")
        has_bash = any(tool.get("name") == "Bash" for tool in asked.get("tools", []))
        is_done = "tool_result" in json.dumps(asked.get("messages", []))
        if has_bash and not is_done:
            given = json.dumps({"command": self.wanted, "description": "make a file"})
            block: dict[str, Any] = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {}}
            delta, stop = {"type": "input_json_delta", "partial_json": given}, "tool_use"
        else:
            block = {"type": "text", "text": ""}
            delta, stop = {"type": "text_delta", "text": "Finished."}, "end_turn"
        usage = {"input_tokens": 1, "output_tokens": 1}
        message: dict[str, Any] = {
            "id": "m1",
            "type": "message",
            "role": "assistant",
            "model": "m",
            "content": [],
        }
        message |= {"stop_reason": None, "stop_sequence": None, "usage": usage}
        ending = {"stop_reason": stop, "stop_sequence": None}
        events: list[dict[str, Any]] = [
            {"type": "message_start", "message": message},
            {"type": "content_block_start", "index": 0, "content_block": block},
            {"type": "content_block_delta", "index": 0, "delta": delta},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": ending, "usage": usage},
            {"type": "message_stop"},
        ]
        text = "".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n" for e in events)
        self._send("text/event-stream", text.encode())

    def do_GET(self) -> None:
        self._send("application/json", b"{}")

    def _send(self, kind: str, body: bytes) -> None:
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@contextmanager
def session(
    claude: Path, home: Path, socket: Path, canary: Path, *, plugin: bool = False
) -> Iterator[Terminal]:
    """Claude Code on a terminal, about to make a file, with our hook by its settings or plugin."""
    project = home / "project"
    project.mkdir()
    known = {str(project): {"hasTrustDialogAccepted": True, "allowedTools": []}}
    about = {"hasCompletedOnboarding": True, "theme": "dark", "projects": known}
    about["customApiKeyResponses"] = {"approved": [KEY[-20:]], "rejected": []}
    (home / ".claude.json").write_text(json.dumps(about))
    if plugin:
        for words in (["marketplace", "add", str(ROOT)], ["install", "stringd@stringd"]):
            done = [str(claude), "plugin", *words]
            subprocess.run(done, env={**os.environ, "HOME": str(home)}, check=True)
    else:
        command = f"{sys.executable} -m stringd gate hook --agent claude"
        write(install(home / ".claude" / "settings.json", command))
    model = type("Model", (_Model,), {"wanted": f"touch {canary}"})
    server = ThreadingHTTPServer(("127.0.0.1", 0), model)
    serving_it = threading.Thread(target=server.serve_forever)
    serving_it.start()
    env = {
        **os.environ,
        "HOME": str(home),
        "TERM": "xterm-256color",
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "STRINGD_PORT": str(free_port()),
        "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{server.server_port}",
        "ANTHROPIC_API_KEY": KEY,
        "STRINGD_GATE_SOCKET": str(socket),
        "DISABLE_AUTOUPDATER": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    }
    where = Path.cwd()
    os.chdir(project)
    terminal = Terminal([str(claude), "--permission-mode", "default", "go"], env, (40, 120))
    os.chdir(where)
    try:
        yield terminal
    finally:
        terminal.process.kill()
        terminal.close()
        server.shutdown()
        server.server_close()
        serving_it.join(PATIENCE)
        # The plugin's server starts a daemon.
        stop = [sys.executable, "-m", "stringd", "down"]
        subprocess.run(stop, env=env, capture_output=True, check=False)


def _letters(screen: str) -> str:
    plain = re.sub(r"\x1b\[[0-9;?>]*[A-Za-z]", "", screen)
    return "".join(each for each in plain if each.isalpha())


def read_until(terminal: Terminal, text: str) -> None:
    """Until the words are on the screen, in whatever pieces and colours they came."""
    deadline = time.monotonic() + PATIENCE
    while text not in _letters(terminal.screen):
        left = deadline - time.monotonic()
        assert left > 0, terminal.screen[-3000:]
        if select.select([terminal.master], [], [], left)[0]:
            terminal.screen += os.read(terminal.master, 65536).decode(errors="replace")


def test_a_yes_at_the_gate_answers_claudes_own_prompt(
    claude: Path, home: Path, tmp_path: Path
) -> None:
    canary, human = tmp_path / "canary", Human()
    with serving(home, human) as desk, session(claude, tmp_path, desk.path, canary) as terminal:
        read_until(terminal, "Finished")
    assert canary.exists()
    [question] = human.asked
    assert question.request.tool == "Bash"
    assert question.request.text == f"touch {canary}\n# make a file"
    assert question.peer.agent.startswith("claude (pid ")


def test_the_plugin_brings_the_hook(claude: Path, home: Path, tmp_path: Path) -> None:
    canary, human = tmp_path / "canary", Human()
    with (
        serving(home, human) as desk,
        session(claude, tmp_path, desk.path, canary, plugin=True) as terminal,
    ):
        read_until(terminal, "Finished")
    assert canary.exists()
    [question] = human.asked
    assert question.request.tool == "Bash"


def test_a_no_at_the_gate_denies_it(claude: Path, home: Path, tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    human = Human(lambda _: KeyAnswer(Event.NO, by="test", note="not here"))
    with serving(home, human) as desk, session(claude, tmp_path, desk.path, canary) as terminal:
        read_until(terminal, "Finished")
    assert len(human.asked) == 1
    assert not canary.exists()


def test_without_a_gate_claude_asks_by_itself(claude: Path, home: Path, tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    with session(claude, tmp_path, home / "none.sock", canary) as terminal:
        read_until(terminal, "Doyouwanttoproceed")
        assert not canary.exists()
        terminal.type("1")
        read_until(terminal, "Finished")
    assert canary.exists()


def test_an_answer_in_claude_takes_the_question_from_the_gate(
    claude: Path, home: Path, tmp_path: Path
) -> None:
    canary, human = tmp_path / "canary", Human()
    with (
        serving(home, human, at_liberty=False) as desk,
        session(claude, tmp_path, desk.path, canary) as terminal,
    ):
        read_until(terminal, "Doyouwanttoproceed")
        terminal.type("1")
        read_until(terminal, "Finished")
        human.at_liberty.set()
    assert canary.exists()

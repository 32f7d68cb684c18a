"""Claude Code behind its real adapter as an agent of a run; its model is a script.

`make soak` installs the adapter by npm.
"""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.runs.support import Json, Watcher, sequential, serving, strategy, wait_until

pytestmark = [pytest.mark.anyio, pytest.mark.soak, pytest.mark.timeout(600)]

VERSION = "0.49.0"
PLACE = Path(sys.prefix, f"claude-agent-acp-{VERSION}")


@pytest.fixture(scope="module")
def adapter() -> Path:
    """The adapter, which brings Claude Code, installed once."""
    program = PLACE / "node_modules" / ".bin" / "claude-agent-acp"
    if not program.exists():
        words = ["npm", "install", "--no-audit", "--no-fund", "--fetch-retries=1", "--prefix"]
        wanted = f"@agentclientprotocol/claude-agent-acp@{VERSION}"
        try:
            subprocess.run([*words, str(PLACE), wanted], check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError):
            pytest.skip("Claude Code could not be installed")
    return program


class Model(BaseHTTPRequestHandler):
    """Asks for the command a message names after `run `, and says what became of it."""

    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))) or b"{}")
        messages = asked.get("messages", [])
        said = [text for message in messages for text in _texts(message)]
        wanted = next((text for text in reversed(said) if text.startswith("run ")), "")
        results = [each for each in said if each.startswith("result: ")]
        told = [each for each in said if "says:" in each]
        if wanted and not results and any(t.get("name") == "Bash" for t in asked.get("tools", [])):
            given = json.dumps({"command": wanted[4:], "description": "what was asked"})
            block: Json = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {}}
            delta, stop = {"type": "input_json_delta", "partial_json": given}, "tool_use"
        else:
            text = (told or results or ["nothing"])[-1]
            block = {"type": "text", "text": ""}
            delta, stop = {"type": "text_delta", "text": f"Heard {text}"}, "end_turn"
        self._send(_stream(block, delta, stop))

    def do_GET(self) -> None:
        self._send(b"{}")

    def _send(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _texts(message: Json) -> Iterator[str]:
    """What a message says, a result of a tool marked as one."""
    content = message.get("content", "")
    for part in [{"type": "text", "text": content}] if isinstance(content, str) else content:
        if part["type"] == "text":
            yield part["text"]
        elif part["type"] == "tool_result":
            yield f"result: {json.dumps(part.get('content'))}"


def _stream(block: Json, delta: Json, stop: str) -> bytes:
    usage = {"input_tokens": 1, "output_tokens": 1}
    message: Json = {"id": "m1", "type": "message", "role": "assistant", "model": "m"}
    message |= {"content": [], "stop_reason": None, "stop_sequence": None, "usage": usage}
    ending = {"stop_reason": stop, "stop_sequence": None}
    events: list[Json] = [
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": ending, "usage": usage},
        {"type": "message_stop"},
    ]
    return "".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n" for e in events).encode()


@pytest.fixture
def coder(adapter: Path, tmp_path: Path) -> Iterator[Json]:
    """The agent of a strategy, whose Claude Code knows only the scripted model."""
    home = tmp_path / "home"
    home.mkdir()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield {
        "type": "acp",
        "command": [str(adapter)],
        "env": {
            "HOME": str(home),
            "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{server.server_port}",
            "ANTHROPIC_API_KEY": "sk-ant-api03-" + "x" * 40,
            "DISABLE_AUTOUPDATER": "1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        },
    }
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def endless(tmp_path: Path) -> Iterator[Path]:
    """A file whose readers wait for the end of the test.

    A command of Claude Code has a session of its own and may outlive the agent.
    """
    path = tmp_path / "never"
    os.mkfifo(path)
    yield path
    # Opened for both this never blocks; whoever reads finds the end once it is closed.
    os.close(os.open(path, os.O_RDWR))


async def begun(watcher: Watcher, path: Path, text: str) -> Json:
    """Start a run and wait for the question of its agent."""
    await watcher.ask("prepare_run", runId="r", strategyPath=str(path))
    await watcher.send("start_run", runId="r", input=text)
    found = await watcher.until("request_permission", "strategy_completed", "strategy_error")
    assert found[-1]["type"] == "request_permission", found[-1]
    return found[-1]


async def decide(watcher: Watcher, prompt: Json, **decision: Any) -> None:
    await watcher.send(
        "permission_decision", runId="r", permissionRequestId=prompt["requestId"], **decision
    )


async def test_a_command_that_is_allowed_runs(coder: Json, tmp_path: Path) -> None:
    made = tmp_path / "made"
    async with serving(tmp_path) as server:
        watcher = await server.watcher()
        path = server.own(strategy(sequential("coder"), coder=coder))
        prompt = await begun(watcher, path, f"run touch {made}")
        assert f"touch {made}" in prompt["resource"]
        assert not made.exists()
        await decide(watcher, prompt, decision="allow")
        assert "Heard result:" in (await watcher.ended())["result"]
    assert made.exists()


async def test_the_reason_of_a_denial_is_heard(coder: Json, tmp_path: Path) -> None:
    made = tmp_path / "made"
    async with serving(tmp_path) as server:
        watcher = await server.watcher()
        path = server.own(strategy(sequential("coder"), coder=coder))
        prompt = await begun(watcher, path, f"run touch {made}")
        await decide(watcher, prompt, decision="deny", reason="use another name")
        assert "says: use another name" in (await watcher.ended())["result"]
    assert not made.exists()


async def test_a_stop_in_the_middle_of_a_command_ends_the_run(
    coder: Json, endless: Path, tmp_path: Path
) -> None:
    begins = tmp_path / "begins"
    async with serving(tmp_path) as server:
        watcher = await server.watcher()
        path = server.own(strategy(sequential("coder"), coder=coder))
        prompt = await begun(watcher, path, f"run touch {begins}; cat {endless}")
        await decide(watcher, prompt, decision="allow")
        await wait_until(begins.exists)
        await watcher.send("stop_run", runId="r")
        assert (await watcher.ended())["error"]["code"] == "CANCELLED"


async def test_an_adapter_that_dies_in_the_middle_of_a_command_fails_the_step(
    coder: Json, endless: Path, tmp_path: Path
) -> None:
    begins = tmp_path / "begins"
    async with serving(tmp_path) as server:
        watcher = await server.watcher()
        path = server.own(strategy(sequential("coder"), coder=coder))
        prompt = await begun(watcher, path, f"run touch {begins}; cat {endless}")
        await decide(watcher, prompt, decision="allow")
        await wait_until(begins.exists)
        (adapter,) = _children_of_ours(coder["command"][0])
        os.kill(adapter, signal.SIGKILL)
        ended = await watcher.ended()
        assert ended["error"]["code"] == "EXECUTION_ERROR"
        assert 'Step "coder" failed' in ended["error"]["message"]


def _children_of_ours(program: str) -> list[int]:
    """Processes that this one started with that program."""
    threads = Path("/proc/self/task").iterdir()
    mine = [pid for each in threads for pid in (each / "children").read_text().split()]
    return [pid for pid in map(int, set(mine)) if program in _words(pid)]


def _words(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()

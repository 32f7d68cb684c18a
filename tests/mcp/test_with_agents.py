"""Six tasks through real coding agents whose model is a script; `make soak` installs them."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.gate.support import Human, serving
from tests.mcp.scripted_model import Script, ToolUse, served
from tests.support.daemon import Daemon

pytestmark = [pytest.mark.soak, pytest.mark.timeout(600)]

PACKAGES = {"claude": "@anthropic-ai/claude-code@2.1.197", "codex": "@openai/codex@0.169.0"}
GREET = """---
name: greet
type: app
---
# Greet

```act.hello
CLI printf 'Hello, %s!' {name}
  name: string (required)
```
"""
SECONDS = 300


@pytest.fixture(scope="module")
def hasty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """A daemon for which a second is long."""
    with Daemon(tmp_path_factory.mktemp("hasty"), STRINGD_MCP_HOLD_MS="1000") as running:
        yield running


@pytest.fixture
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with a short name, for sockets; an executor moves its process elsewhere."""
    where, umask = Path.cwd(), os.umask(0o077)
    os.umask(umask)
    yield tmp_path_factory.mktemp("g")
    os.chdir(where)
    os.umask(umask)


def program(agent: str) -> Path:
    """A coding agent, installed once."""
    package = PACKAGES[agent]
    place = Path(sys.prefix, package.rpartition("/")[2].replace("@", "-"))
    found = place / "node_modules" / ".bin" / agent
    if not found.exists():
        words = ["npm", "install", "--no-audit", "--no-fund", "--fetch-retries=1", "--prefix"]
        try:
            subprocess.run([*words, str(place), package], check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError):
            pytest.skip(f"{agent} could not be installed")
    return found


def string(cmd: str, topic: str = "file:main") -> Callable[[str], ToolUse]:
    return lambda _: ToolUse("string", {"topic": topic, "cmd": cmd})


def waiting(answer: str) -> ToolUse:
    """Wait with the handle that the answer before names."""
    found = re.search(r'handle "([^"]+)"', answer)
    assert found, answer
    return ToolUse("wait", {"handle": found[1]})


def claude(place: Path, daemon: Daemon, script: Script, env: dict[str, str]) -> list[str]:
    server = {"command": sys.executable, "args": ["-m", "stringd", "mcp"], "env": env}
    (place / "mcp.json").write_text(json.dumps({"mcpServers": {"string": server}}))
    words = ["-p", "go", "--mcp-config", str(place / "mcp.json"), "--strict-mcp-config"]
    return [str(program("claude")), *words, "--allowedTools", "mcp__string"]


def codex(place: Path, daemon: Daemon, script: Script, env: dict[str, str]) -> list[str]:
    settings = {
        # Of a model it does not know, it expects plain calls of tools.
        "model": "scripted",
        "model_provider": "script",
        "model_providers.script": {
            "name": "script",
            "base_url": f"{script.url}/v1",
            "wire_api": "responses",
            "env_key": "SCRIPT_KEY",
        },
        "mcp_servers.string": {
            "command": sys.executable,
            "args": ["-m", "stringd", "mcp"],
            "env": env,
            "default_tools_approval_mode": "approve",
            "startup_timeout_sec": 60,
        },
    }
    words = [word for name, value in settings.items() for word in ("-c", f"{name}={_toml(value)}")]
    return [str(program("codex")), "exec", "--skip-git-repo-check", *words, "go"]


def _toml(value: object) -> str:
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key} = {_toml(each)}' for key, each in value.items())}}}"
    return json.dumps(value)


@pytest.mark.parametrize("agent", [claude, codex])
def test_six_tasks_without_a_wrong_turn(
    hasty: Daemon,
    home: Path,
    tmp_path: Path,
    agent: Callable[[Path, Daemon, Script, dict[str, str]], list[str]],
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "README.md").write_text("# Kettle\n\n## Install\n\nmake install\n", "utf-8")
    (project / "greet").mkdir()
    (project / "greet" / "string.md").write_text(GREET, "utf-8")
    built = tmp_path / "built"
    build = f"until [ -e {built} ]; do echo compiling; sleep 0.2; done; echo built"

    def finish_build(answer: str) -> ToolUse:
        built.touch()
        return waiting(answer)

    script = Script(
        [
            string("/outline README.md"),
            string("/open README.md#install"),
            string("/replace README.md\nmake install\n---\nmake all install"),
            string(build, "bash:build"),
            finish_build,
            string("/install ./greet", "file:setup"),
            string("/act.hello Ada", "app:greet"),
            lambda _: ToolUse(
                "execute",
                {"argv": ["echo", "approved"], "privileged": False, "description": "to try"},
            ),
            lambda _: ToolUse("run_strategy", {"strategy": "hello", "input": "Ada"}),
        ]
    )
    human = Human()
    with serving(home, human) as desk, served(script):
        reach = {
            "STRINGD_PORT": str(hasty.port),
            "STRINGD_USER": agent.__name__,
            "STRINGD_HOME": str(tmp_path / "string"),
            "STRINGD_GATE_SOCKET": str(desk.path),
            "HOME": str(tmp_path),
        }
        done = subprocess.run(
            agent(tmp_path, hasty, script, reach),
            cwd=project,
            env={
                **os.environ,
                "HOME": str(tmp_path),
                "ANTHROPIC_BASE_URL": script.url,
                "ANTHROPIC_API_KEY": "sk-ant-api03-" + "x" * 40,
                "SCRIPT_KEY": "none",
                "DISABLE_AUTOUPDATER": "1",
                "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
                "ENABLE_TOOL_SEARCH": "false",
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    said = f"{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
    assert len(script.read) == len(script.steps), said
    outline, section, edit, handle, ready, installed, greeting, approved, run = script.read
    assert "Install  #install" in outline
    assert "make install" in section
    assert "make all install" in edit
    assert "still running after" in handle
    assert "exit: 0" in ready
    assert "built" in ready
    assert "Installed app:greet" in installed
    assert "Hello, Ada!" in greeting
    assert "approved" in approved
    assert "Hello! You said: Ada" in run
    assert [question.request.reason for question in human.asked] == ["to try"]
    assert not [answer for answer in script.read if "ERROR(" in answer]
    assert "make all install" in (project / "README.md").read_text("utf-8")
    assert "Finished." in done.stdout

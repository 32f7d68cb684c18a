"""The MCP inspector, a client by the protocol's own people, on both transports."""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.support.daemon import WAIT_SECONDS, Daemon
from tests.support.machine import INSPECTOR_BIN, INSPECTOR_VERSION

pytestmark = pytest.mark.skipif(
    not INSPECTOR_BIN.exists(),
    reason=f"the MCP inspector {INSPECTOR_VERSION} is not installed; it takes npm",
)


class Said(NamedTuple):
    code: int
    answer: Any


Inspect = Callable[..., Said]


README = Path(__file__).parents[2] / "README.md"


def run_inspector(daemon: Daemon, *arguments: str) -> Said:
    """Run the inspector once: its exit code and the JSON it prints."""
    ours = Path(sys.executable).parent
    done = subprocess.run(
        [INSPECTOR_BIN / "mcp-inspector", "--cli", *arguments],
        env=daemon.child_environment() | {"PATH": f"{ours}:{INSPECTOR_BIN}:/usr/bin:/bin"},
        cwd=daemon.directory,
        capture_output=True,
        text=True,
        timeout=WAIT_SECONDS,
        check=False,
    )
    assert done.stdout, done.stderr
    return Said(done.returncode, json.loads(done.stdout))


@pytest.fixture(params=["stdio", "http"])
def inspect(daemon: Daemon, request: pytest.FixtureRequest) -> Inspect:
    """Asks our server for something, with further arguments."""
    port = str(daemon.port)
    # The inspector keeps our settings from the programs it starts.
    started = ("stringd", "mcp", "--port", port)
    target = started if request.param == "stdio" else (f"http://127.0.0.1:{port}/mcp",)

    def run(method: str, *arguments: str) -> Said:
        return run_inspector(daemon, *target, "--method", method, *arguments)

    return run


def called(topic: str, command: str) -> tuple[str, ...]:
    return ("--tool-name", "string", "--tool-arg", f"topic={topic}", f"cmd={command}")


def test_it_finds_no_fault_with_our_tools(inspect: Inspect) -> None:
    listed = inspect("tools/list", "--strict")
    assert listed.code == 0
    assert len(listed.answer["tools"]) == 7


def test_it_calls_a_tool_and_is_told_of_failure(inspect: Inspect) -> None:
    fine = inspect("tools/call", *called("bash:inspector", "echo $((6 * 7))"))
    assert fine.code == 0
    assert "\n42\n</𝒞>" in fine.answer["content"][0]["text"]
    failed = inspect("tools/call", *called("file:inspector", "/open gone.md"))
    assert failed.code == 5
    assert failed.answer["isError"] is True


def test_it_finds_and_reads_what_a_topic_shows(inspect: Inspect, daemon: Daemon) -> None:
    home = daemon.directory / ".string/users/default"
    home.mkdir(parents=True, exist_ok=True)
    (home / "shown.md").write_text("# Shown")
    inspect("tools/call", *called("file:shown", "/open shown.md"))
    listed = inspect("resources/list").answer["resources"]
    assert "string://topics/file:shown" in [each["uri"] for each in listed]
    read = inspect("resources/read", "--uri", "string://topics/file:shown").answer
    assert read["contents"][0]["text"] == "# Shown"
    assert len(inspect("resources/templates/list").answer["resourceTemplates"]) == 2


def test_the_line_for_cursor_works_as_it_is_printed(daemon: Daemon, tmp_path: Path) -> None:
    """The inspector reads the same file."""
    [line] = re.findall(r"`(\{\"mcpServers\".*\})`", README.read_text(encoding="utf-8"))
    config = tmp_path / "mcp.json"
    config.write_text(line)
    port = f"STRINGD_PORT={daemon.port}"
    asked = ("--config", str(config), "--server", "string", "-e", port, "--method", "tools/list")
    assert len(run_inspector(daemon, *asked).answer["tools"]) == 7

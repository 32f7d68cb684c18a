"""The plugin in real coding agents whose model is a script; `make soak` installs them."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.mcp.scripted_model import Script, served
from tests.mcp.test_with_agents import SECONDS, program
from tests.support.daemon import free_port

pytestmark = [pytest.mark.soak, pytest.mark.timeout(900)]

ROOT = Path(__file__).parents[2]
STARTS = 5
INSTALL = {
    "claude": (
        ["plugin", "marketplace", "add", str(ROOT)],
        ["plugin", "install", "stringd@stringd"],
    ),
    "codex": (
        ["plugin", "marketplace", "add", str(ROOT)],
        ["plugin", "add", "stringd@stringd"],
    ),
}
GO = {
    "claude": ["-p", "go"],
    "codex": ["exec", "--skip-git-repo-check", "go"],
}


def call(agent: str, env: dict[str, str], words: list[str]) -> str:
    done = subprocess.run(
        [program(agent), *words],
        env=env,
        cwd=env["HOME"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    said = f"{done.stdout}\n{done.stderr}"
    assert done.returncode == 0, said
    return said


def person(home: Path, script: Script) -> dict[str, str]:
    """Somebody with `stringd` on the path; agents pass hardly more than that to servers."""
    commands = home / "bin"
    commands.mkdir(parents=True)
    stringd = commands / "stringd"
    stringd.write_text(
        f'#!/bin/sh\nSTRINGD_PORT={free_port()} exec {sys.executable} -P -m stringd "$@"\n'
    )
    stringd.chmod(0o755)
    (home / ".codex").mkdir()
    (home / ".codex" / "config.toml").write_text(
        'model = "scripted"\nmodel_provider = "script"\n[model_providers.script]\n'
        f'name = "script"\nbase_url = "{script.url}/v1"\nwire_api = "responses"\n'
        'env_key = "SCRIPT_KEY"\n'
    )
    inherited = {name: text for name, text in os.environ.items() if name[:8] != "STRINGD_"}
    return inherited | {
        "HOME": str(home),
        "PATH": f"{commands}:{os.environ['PATH']}",
        "ANTHROPIC_BASE_URL": script.url,
        "ANTHROPIC_API_KEY": "sk-ant-api03-" + "x" * 40,
        "SCRIPT_KEY": "none",
        "DISABLE_AUTOUPDATER": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "ENABLE_TOOL_SEARCH": "false",
    }


def ours(offered: str) -> set[str]:
    """Our tools among those of a request, whatever the client puts before their names."""
    names = set()
    for tool in json.loads(offered):
        if tool.get("type") == "namespace" and "string" in tool["name"]:
            names |= {each["name"] for each in tool["tools"]}
        found = re.search(r"string__(\w+)$", tool.get("name", ""))
        names |= {found[1]} if found else set()
    return names


@pytest.mark.parametrize("agent", ["claude", "codex"])
def test_the_first_request_of_every_cold_start_has_our_tools(agent: str, tmp_path: Path) -> None:
    script = Script([])
    with served(script):
        env = person(tmp_path / "home", script)
        for words in INSTALL[agent]:
            call(agent, env, words)
        for _ in range(STARTS):
            script.offered.clear()
            try:
                said = call(agent, env, GO[agent])
            finally:
                subprocess.run([tmp_path / "home/bin/stringd", "down"], env=env, check=True)
            assert script.offered, said
            assert {"string", "wait", "execute", "run_strategy"} <= ours(script.offered[0]), said

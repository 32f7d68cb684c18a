"""What other programs read to install us: each file has the fields that its reader requires."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from scripts.release import INITIALIZE
from stringd import __version__
from stringd.cli.main import SUBCOMMANDS
from stringd.gate.hook_settings import install
from tests.support.daemon import WAIT_SECONDS, Daemon

ROOT = Path(__file__).parents[1]
PLUGIN = ROOT / "plugins/stringd"
_KEBAB = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")


def read(path: Path) -> dict[str, Any]:
    value = json.loads(path.read_text("utf-8"))
    assert isinstance(value, dict)
    return value


def test_the_marketplaces_lead_to_the_plugin() -> None:
    claude = read(ROOT / ".claude-plugin/marketplace.json")
    agents = read(ROOT / ".agents/plugins/marketplace.json")
    assert _KEBAB.fullmatch(claude["name"])
    assert claude["owner"]["name"]
    sources = [claude["plugins"][0]["source"], agents["plugins"][0]["source"]["path"]]
    for source in sources:
        assert source.startswith("./")
        assert (ROOT / source).resolve() == PLUGIN
    assert agents["plugins"][0]["source"]["source"] == "local"
    assert agents["plugins"][0]["policy"] == {
        "installation": "AVAILABLE",
        "authentication": "ON_INSTALL",
    }


@pytest.mark.parametrize("client", [".claude-plugin", ".codex-plugin"])
def test_the_plugin_says_what_it_is(client: str) -> None:
    manifest = read(PLUGIN / client / "plugin.json")
    assert _KEBAB.fullmatch(manifest["name"])
    assert manifest["version"] == __version__
    assert manifest["description"]
    for field in ("skills", "mcpServers"):
        if field in manifest:
            assert (PLUGIN / manifest[field]).exists()
    assert [path.name for path in (PLUGIN / client).iterdir()] == ["plugin.json"]


def test_the_plugin_starts_a_command_that_exists() -> None:
    (server,) = read(PLUGIN / ".mcp.json")["mcpServers"].values()
    assert server["command"] == "stringd"
    assert server["args"][0] in SUBCOMMANDS


def test_the_plugin_has_the_hook_that_the_command_would_install(tmp_path: Path) -> None:
    hooks = read(PLUGIN / "hooks/hooks.json")["hooks"]
    change = install(tmp_path / "settings.json", "stringd gate hook --agent claude")
    assert change.after is not None
    assert hooks == json.loads(change.after)["hooks"]


def test_the_bundle_starts_this_version_with_files_it_holds() -> None:
    bundle = ROOT / "plugins/mcpb"
    manifest = read(bundle / "manifest.json")
    project = tomllib.loads((bundle / "pyproject.toml").read_text("utf-8"))["project"]
    assert manifest["version"] == project["version"] == __version__
    assert project["dependencies"] == [f"stringd=={__version__}"]
    server = manifest["server"]
    assert (server["type"], server["mcp_config"]["command"]) == ("uv", "uv")
    assert (bundle / server["entry_point"]).exists()
    assert server["mcp_config"]["args"][-1] == server["entry_point"]


def test_the_entry_point_of_the_bundle_serves_mcp(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("a daemon cannot start here, and need not")
    done = subprocess.run(
        [sys.executable, ROOT / "plugins/mcpb/server.py"],
        env=Daemon(tmp_path).child_environment(),
        input=json.dumps(INITIALIZE).encode() + b"\n",
        capture_output=True,
        timeout=WAIT_SECONDS,
        check=False,
    )
    answer = json.loads(done.stdout.splitlines()[0])
    assert answer["result"]["serverInfo"] == {"name": "string", "version": __version__}


def test_the_skill_says_when_to_use_it() -> None:
    (skill,) = (PLUGIN / "skills").glob("*/SKILL.md")
    _, head, body = skill.read_text("utf-8").split("---\n", 2)
    fields = dict(line.split(": ", 1) for line in head.splitlines())
    assert fields["name"] == skill.parent.name
    assert fields["description"].startswith("Use when")
    assert len(fields["description"]) <= 1024
    assert body.strip()


def test_the_registry_can_read_server_json() -> None:
    server = read(ROOT / "server.json")
    assert server["$schema"].startswith("https://static.modelcontextprotocol.io/schemas/")
    assert re.fullmatch(r"[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+", server["name"])
    assert 0 < len(server["description"]) <= 100
    assert server["version"] == __version__
    (package,) = server["packages"]
    assert package["registryType"] == "pypi"
    assert (package["identifier"], package["version"]) == ("stringd", __version__)
    assert package["transport"] == {"type": "stdio"}
    assert package["packageArguments"] == [{"type": "positional", "value": "mcp"}]

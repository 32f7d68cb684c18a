"""What other programs read to install us: each file has the fields that its reader requires."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from stringd import __version__
from stringd.cli.main import SUBCOMMANDS

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

"""Which MCP servers are known, from the data directory to the strategy itself."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from stringd.formats.shapes import Fields
from stringd.runs.errors import StrategyFileError
from stringd.runs.strategy.definition import LlmAgent, Strategy
from stringd.runs.strategy.discover import PROJECT_FOLDERS
from stringd.runs.strategy.schema import MCP_SERVERS
from stringd.runs.strategy.source import read_source
from stringd.system.files import write_atomically
from stringd.system.provider_keys import with_provider_keys
from stringd.system.sandbox import Level

Origin = Literal["global", "workspace", "strategy"]
_FILE: Final = Fields({"mcpServers": MCP_SERVERS})


class MissingVariableError(Exception):
    """A definition names an environment variable that is not set."""


@dataclass(frozen=True)
class ServerDefinition:
    """One server. `file` defines it; what it says is resolved when it is connected to."""

    id: str
    source: Origin
    raw: Mapping[str, Any]
    file: Path

    @property
    def transport(self) -> Literal["http", "sse", "stdio"]:
        found: Literal["http", "sse", "stdio"] = self.raw["transport"]
        return found

    @property
    def enabled_by_default(self) -> bool:
        """A strategy's own servers are on unless it says otherwise; shared ones are off."""
        return bool(self.raw.get("enabledByDefault", self.source == "strategy"))

    @property
    def owned(self) -> bool:
        """Whether the daemon's owner wrote it, not somebody's project."""
        return self.source == "global"

    @property
    def sandbox(self) -> Level:
        """How far it reaches; only the owner's own definitions open it."""
        wanted = Level(self.raw.get("sandbox", Level.WORKSPACE))
        return Level.WORKSPACE if wanted is Level.OPEN and not self.owned else wanted

    def text(self, key: str) -> str | None:
        """A value, from the environment where it says so. Raises `MissingVariableError`."""
        value = self.raw.get(key)
        return None if value is None else _resolved(value)

    def texts(self, key: str) -> list[str]:
        return [_resolved(value) for value in self.raw.get(key, ())]

    def mapping(self, key: str) -> dict[str, str]:
        return {name: _resolved(value) for name, value in self.raw.get(key, {}).items()}


def _resolved(value: Any) -> str:
    if isinstance(value, str):
        return value
    found = with_provider_keys().get(value["env"], "")
    if not found:
        raise MissingVariableError(f"Missing environment variable: {value['env']}")
    return found


def definitions(
    data_dir: Path, cwd: Path, strategy: Strategy | None
) -> dict[str, ServerDefinition]:
    """Every known server by id; nearer definitions win. Raises `StrategyFileError`."""
    found = _shared(data_dir / "mcp.json", "global")
    for folder in reversed(PROJECT_FOLDERS):
        # The default data directory is the project's own folder; its file is then read twice.
        found |= _shared(cwd / folder / "mcp.json", "workspace")
    if strategy is not None:
        found |= {
            name: ServerDefinition(name, "strategy", raw, strategy.path)
            for name, raw in strategy.mcp_servers.items()
        }
    return found


def _shared(path: Path, source: Origin) -> dict[str, ServerDefinition]:
    if not path.is_file():
        return {}
    read = read_source(path, "MCP configuration")
    issues = _FILE.check(read.value)
    if issues:
        lines = "\n".join(f"  - {read.describe(issue)}" for issue in issues)
        raise StrategyFileError(f"MCP configuration validation failed:\n{lines}")
    servers: Mapping[str, Any] = read.value["mcpServers"]
    return {name: ServerDefinition(name, source, raw, path) for name, raw in servers.items()}


def rewrite_default(definition: ServerDefinition, *, enabled: bool) -> None:
    """Change `enabledByDefault` in the defining file. Raises `StrategyFileError` or `OSError`."""
    value = read_source(definition.file, "MCP configuration").value
    value["mcpServers"][definition.id]["enabledByDefault"] = enabled
    text = msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"
    write_atomically(definition.file, text, definition.file.stat().st_mode & 0o777)


def assigned(strategy: Strategy, server_id: str) -> list[str]:
    """The agents that get a server's tools."""
    return [
        name
        for name, agent in strategy.agents.items()
        if isinstance(agent, LlmAgent) and server_id in agent.mcp_servers
    ]

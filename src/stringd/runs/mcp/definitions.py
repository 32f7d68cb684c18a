"""Which MCP servers are known, from the data directory to the strategy itself."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from stringd.formats.shapes import Fields
from stringd.net.mcp_walls import ServerNetwork, server_network
from stringd.runs.errors import RunServiceError, StrategyFileError, UntrustedError
from stringd.runs.mcp.programs import programs_of
from stringd.runs.strategy.definition import LlmAgent, Strategy
from stringd.runs.strategy.files import PROJECT_FOLDERS, Provenance, StrategyFiles, trust_line
from stringd.runs.strategy.schema import MCP_SERVERS
from stringd.runs.strategy.source import read_source
from stringd.system.files import write_atomically
from stringd.system.provider_keys import with_provider_keys
from stringd.system.safe_open import read_file
from stringd.system.sandbox import Level
from stringd.system.trust import digest_of

log = logging.getLogger(__name__)

Origin = Literal["global", "workspace", "strategy"]
MAX_PROGRAM_BYTES: Final = 16 * 1024 * 1024
_FILE: Final = Fields({"mcpServers": MCP_SERVERS})


class MissingVariableError(Exception):
    """A definition names an environment variable that is not set."""


@dataclass(frozen=True)
class ServerDefinition:
    """One server. `file` defines it; what it says is resolved when it is connected to.

    `refusal` says why it is never started, and what would change that.
    """

    id: str
    source: Origin
    raw: Mapping[str, Any]
    file: Path
    refusal: RunServiceError | None = None
    programs: Mapping[Path, str] = field(default_factory=dict)
    """Files of the workspace that it runs, with the digests the owner trusted."""

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

    @property
    def network(self) -> ServerNetwork:
        """What of the network it reaches. Raises `HostListError`."""
        return server_network(self.raw.get("network"))

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
    data_dir: Path, cwd: Path, strategy: Strategy | None, files: StrategyFiles
) -> dict[str, ServerDefinition]:
    """Every known server by id. Raises `StrategyFileError`.

    Nearer definitions win among those of a workspace, but none of them replaces the owner's.
    """
    judge = _DefinitionJudge(data_dir, cwd, files)
    found: dict[str, ServerDefinition] = {}
    for folder in reversed(PROJECT_FOLDERS):
        found |= judge.shared(cwd / folder / "mcp.json", "workspace", cwd)
    # The default data directory is the project's own folder; its file is then read twice.
    own = judge.shared(data_dir / "mcp.json", "global")
    if strategy is None:
        return found | own
    beside = {
        name: judge.definition(name, "strategy", raw, strategy.path, strategy.provenance)
        for name, raw in strategy.mcp_servers.items()
    }
    return found | own | beside if strategy.provenance == "owner" else found | beside | own


def definitions_problem(path: Path) -> str | None:
    """What is wrong with a file of MCP servers; None for one that can be read."""
    try:
        read = read_source(path, "MCP configuration")
    except StrategyFileError as error:
        return str(error)
    issues = _FILE.check(read.value)
    return read.describe(issues[0]) if issues else None


class _DefinitionJudge:
    """Which definitions may be used: the owner's all, those of a workspace when trusted."""

    def __init__(self, data_dir: Path, cwd: Path, files: StrategyFiles) -> None:
        self._data_dir = data_dir
        self._cwd = cwd
        self._files = files

    def shared(
        self, path: Path, source: Origin, within: Path | None = None
    ) -> dict[str, ServerDefinition]:
        if not path.is_file():
            return {}
        try:
            return self._read(path, source, within)
        except StrategyFileError as error:
            if within is None or self._files.state(within) == "trusted":
                raise
            # A stranger's mistake must not keep the owner from working there.
            log.warning("not trusted, and left out: %s", error)
            return {}

    def _read(self, path: Path, source: Origin, within: Path | None) -> dict[str, ServerDefinition]:
        read = read_source(path, "MCP configuration", self._files, within)
        issues = _FILE.check(read.value)
        if issues:
            lines = "\n".join(f"  - {read.describe(issue)}" for issue in issues)
            raise StrategyFileError(f"MCP configuration validation failed:\n{lines}")
        servers: Mapping[str, Any] = read.value["mcpServers"]
        return {
            name: self.definition(name, source, raw, path, read.provenance)
            for name, raw in servers.items()
        }

    def definition(
        self, name: str, source: Origin, raw: Mapping[str, Any], file: Path, whose: Provenance
    ) -> ServerDefinition:
        found = ServerDefinition(name, source, raw, file)
        if whose == "owner":
            return found
        programs: dict[Path, str] = {}
        return replace(found, refusal=self._refusal(found, whose, programs), programs=programs)

    def _refusal(
        self, definition: ServerDefinition, whose: Provenance, programs: dict[Path, str]
    ) -> RunServiceError | None:
        """Why it is not started; `programs` gets what was judged for one that is."""
        if _asks_for_environment(definition.raw):
            return StrategyFileError(
                f'MCP server "{definition.id}" of {definition.file} reads your environment '
                f'({{"env": …}}), which only your own definitions may: '
                f"put it into {self._data_dir / 'mcp.json'}"
            )
        if whose == "foreign":
            return self._files.needs_trust(definition.file)
        for path in programs_of(definition.raw, definition.file, self._cwd):
            digest = self._trusted_digest(path)
            if digest is None:
                return _changed_program(definition, path)
            programs[path] = digest
        return None

    def _trusted_digest(self, path: Path) -> str | None:
        try:
            read = self._files.read(path, MAX_PROGRAM_BYTES)
        except OSError:
            return None
        return None if read.provenance == "foreign" else digest_of(read.data)


def _changed_program(definition: ServerDefinition, path: Path) -> UntrustedError:
    whole = definition.file.parent
    trusted = whole.parent if whole.name in PROJECT_FOLDERS else definition.file
    return UntrustedError(
        f'MCP server "{definition.id}" would run {path}, which is not trusted or has changed. '
        f"Look at it, then: {trust_line(trusted)}",
        str(trusted),
    )


def changed_program(definition: ServerDefinition) -> Path | None:
    """A program of a server that is not any more what was judged, if there is one."""
    for path, digest in definition.programs.items():
        try:
            if digest_of(read_file(path, MAX_PROGRAM_BYTES).data) != digest:
                return path
        except OSError:
            return path
    return None


def _asks_for_environment(raw: Mapping[str, Any]) -> bool:
    """Whether a definition takes something from the daemon's environment."""
    settings = [raw.get(key) for key in ("command", "url", "cwd")]
    settings += [*raw.get("args", ()), *raw.get("env", {}).values()]
    settings += raw.get("headers", {}).values()
    return any(isinstance(each, Mapping) for each in settings)


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

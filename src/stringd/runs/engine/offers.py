"""What the owner would allow by trusting a file or a folder: shown first, then recorded."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from stringd.runs.errors import StrategyFileError
from stringd.runs.mcp.definitions import MAX_PROGRAM_BYTES, ServerDefinition
from stringd.runs.mcp.programs import programs_of
from stringd.runs.strategy.acp_commands import ACP_COMMANDS
from stringd.runs.strategy.files import PROJECT_FOLDERS, StrategyFiles
from stringd.runs.strategy.load import prompt_files
from stringd.runs.strategy.project import MANIFEST_NAMES, read_manifest
from stringd.runs.strategy.schema import MCP_SERVERS, STRATEGY
from stringd.runs.strategy.skills import SkillFileError, read_skill
from stringd.runs.strategy.source import FORMATS, read_source
from stringd.system.safe_open import read_file
from stringd.system.trust import TrustError, TrustStore, digest_of, real_path


class OfferedFile(NamedTuple):
    """A path and the digest of what is there."""

    path: str
    digest: str


class Offer(NamedTuple):
    """`uses` says, a line each, what would be started or used. `entries` are what is recorded."""

    path: str
    uses: list[str]
    entries: list[OfferedFile]

    def accept(self, trust: TrustStore) -> None:
        """Keep the owner's word. Raises `TrustError`."""
        for each in self.entries:
            trust.trust(each.path, each.digest)


def offer_of(path: Path, trust: TrustStore) -> Offer:
    """What trusting a path would allow. Raises `TrustError` when there is nothing to trust."""
    real = Path(real_path(path))
    if real.name in PROJECT_FOLDERS and real.is_dir():
        real = real.parent
    try:
        return _folder(real, trust) if real.is_dir() else _file(real)
    except OSError as error:
        raise TrustError(f"cannot read {error.filename or path}: {error.strerror}") from None


def _folder(folder: Path, trust: TrustStore) -> Offer:
    content = StrategyFiles(trust=trust).content(folder)
    if content.problem is not None:
        raise TrustError(content.problem)
    if not content.files:
        raise TrustError(
            f"{folder} has no .stringd or .comma with anything in it. To trust one file, name it."
        )
    uses: list[str] = []
    programs: set[Path] = set()
    for name in PROJECT_FOLDERS:
        top = folder / name
        for server in _servers(top / "mcp.json"):
            uses.append(_server_line(server))
            programs.update(programs_of(server.raw, server.file, folder))
        uses += _project_lines(top)
        uses += _strategy_lines(top / "strategies")
        uses += _skill_lines(top / "skills")
    for strategy in _strategies(folder):
        own = _own_servers(strategy)
        programs.update(*(programs_of(each.raw, each.file, folder) for each in own))
    uses.append(f"{len(content.files)} files in all, of which every change asks again")
    entries = [OfferedFile(str(folder), content.digest)]
    entries += [_entry(path) for path in sorted(programs) if str(path) not in content.files]
    return Offer(str(folder), uses, entries)


def _file(path: Path) -> Offer:
    if path.name in MANIFEST_NAMES:
        return _manifest(path)
    entries = [_entry(path)]
    uses: list[str] = []
    if path.suffix.lower() in FORMATS:
        servers = list(_own_servers(path))
        uses += [_server_line(each) for each in servers]
        value = _value(path)
        uses += [] if STRATEGY.check(value) else _agent_lines(value)
        beside = {each.resolve() for each in prompt_files(path) if each.is_file()}
        uses += [f"prompt {each}" for each in sorted(beside)]
        for server in servers:
            beside.update(programs_of(server.raw, server.file, path.parent))
        entries += [_entry(each) for each in sorted(beside)]
    return Offer(str(path), uses or ["the file itself"], entries)


def _manifest(path: Path) -> Offer:
    try:
        manifest = read_manifest(path)
    except StrategyFileError as error:
        raise TrustError(str(error)) from None
    named = [*manifest.modules, *(each.path for each in (*manifest.strategies, *manifest.agents))]
    uses = [f"code of {manifest.name}: {each}" for each in manifest.modules]
    uses += [f"strategy {each.path}" for each in manifest.strategies]
    files = sorted({each.resolve() for each in named})
    return Offer(str(path), uses or ["the file itself"], [_entry(each) for each in (path, *files)])


def _entry(path: Path) -> OfferedFile:
    real = real_path(path)
    return OfferedFile(real, digest_of(read_file(Path(real), MAX_PROGRAM_BYTES).data))


def _servers(path: Path) -> list[ServerDefinition]:
    value = _value(path)
    servers = value.get("mcpServers", {})
    if MCP_SERVERS.check(servers):
        return []
    return [ServerDefinition(name, "workspace", raw, path) for name, raw in servers.items()]


def _own_servers(path: Path) -> Iterator[ServerDefinition]:
    value = _value(path)
    if not STRATEGY.check(value):
        for name, raw in value.get("mcpServers", {}).items():
            yield ServerDefinition(name, "strategy", raw, path)


def _value(path: Path) -> Mapping[str, Any]:
    try:
        value = read_source(path).value if path.is_file() else {}
    except StrategyFileError:
        return {}
    return value if isinstance(value, dict) else {}


def _server_line(server: ServerDefinition) -> str:
    raw = server.raw
    words = [raw.get("command"), *raw.get("args", ())] if server.transport == "stdio" else []
    shown = " ".join(map(str, words)) if words else str(raw.get("url"))
    # What is in its environment decides what it loads as much as its words do.
    more = [f"with {name}={value}" for name, value in raw.get("env", {}).items()]
    more += [f"in {raw['cwd']}"] if "cwd" in raw else []
    return " ".join([f"MCP server {server.id}: {shown}", *more])


def _agent_lines(value: Mapping[str, Any]) -> Iterator[str]:
    """The programs its agents are."""
    for name, agent in value["agents"].items():
        if agent.get("type") == "acp":
            words = agent.get("command") or ACP_COMMANDS[agent["agent"]]
            more = "".join(f" with {key}={text}" for key, text in agent.get("env", {}).items())
            yield f"agent {name}: {' '.join(words)}{more}"


def _strategies(folder: Path) -> Iterator[Path]:
    for name in PROJECT_FOLDERS:
        yield from _files_in(folder / name / "strategies")


def _files_in(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")) if folder.is_dir() else ():
        if path.suffix.lower() in FORMATS and path.is_file():
            yield path


def _strategy_lines(folder: Path) -> Iterator[str]:
    for path in _files_in(folder):
        value = _value(path)
        if path.name in MANIFEST_NAMES:
            yield from _project_lines(path.parent)
        elif not STRATEGY.check(value):
            yield f"strategy {value['name']}: {path}"
            yield from map(_server_line, _own_servers(path))
            yield from _agent_lines(value)


def _project_lines(folder: Path) -> Iterator[str]:
    for name in MANIFEST_NAMES:
        if (folder / name).is_file():
            try:
                manifest = read_manifest(folder / name)
            except StrategyFileError:
                continue
            yield from (f"code of {manifest.name}: {each}" for each in manifest.modules)


def _skill_lines(folder: Path) -> Iterator[str]:
    for path in sorted(folder.glob("*/SKILL.md")):
        try:
            skill, _ = read_skill(path, "project", StrategyFiles())
        except (SkillFileError, OSError):
            continue
        yield f"skill {skill.name}: {skill.description}"

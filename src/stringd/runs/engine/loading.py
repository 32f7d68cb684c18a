"""From a request and a timeline to everything a segment needs. Touches files, not the loop."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from stringd.formats.shapes import dotted
from stringd.runs.agents.extensions import CustomType, Registry
from stringd.runs.engine.config import RunsConfig
from stringd.runs.engine.remembered import RememberedStrategy
from stringd.runs.engine.run import Prepared, RunSettings
from stringd.runs.errors import (
    PrepareError,
    RunServiceError,
    StrategyFileError,
    UntrustedError,
)
from stringd.runs.guard.budget import RunLimits
from stringd.runs.mcp.definitions import ServerDefinition, definitions
from stringd.runs.mcp.servers import check_servers, default_selection
from stringd.runs.record.events import RunStarted
from stringd.runs.record.resume import read_journal
from stringd.runs.record.store import KeptStrategy, RunStore
from stringd.runs.record.views import conversation, latest_start
from stringd.runs.strategy import definition as d
from stringd.runs.strategy.discover import find, find_project
from stringd.runs.strategy.files import PROJECT_FOLDERS, StrategyFiles
from stringd.runs.strategy.load import KnownNames, load_strategy
from stringd.runs.strategy.packages import StrategyPackages
from stringd.runs.strategy.project import (
    check_agent_files,
    check_permissions,
    read_manifest,
    run_modules,
)
from stringd.runs.strategy.schema import STRATEGY
from stringd.runs.strategy.skills import Skill, SkillsFound, find_skills
from stringd.runs.strategy.source import read_source
from stringd.runs.tools.built_in import rebuilding_tools
from stringd.runs.tools.tool import Tool
from stringd.system.file_marks import mark
from stringd.wire.runs.requests import PrepareRun

log = logging.getLogger(__name__)


def prepare(
    request: PrepareRun,
    run_id: str,
    config: RunsConfig,
    store: RunStore,
    *,
    in_memory: bool,
    tools: Sequence[Tool] = (),
) -> Prepared:
    """Load everything. `tools` are those the client offers.

    Raises `PrepareError` or `StrategyFileError`, whatever went wrong.
    """
    try:
        return _prepare(request, run_id, config, store, in_memory=in_memory, tools=tools)
    except RunServiceError:
        raise
    except Exception as error:
        # A name the system cannot even look up, a disk that fails: all the caller's news is that.
        log.warning("preparing run %s failed", run_id, exc_info=error)
        raise PrepareError(f"Run could not be prepared: {error}") from error


def prepare_remembered(
    request: PrepareRun, run_id: str, config: RunsConfig, store: RunStore
) -> Prepared | None:
    """A new run of a strategy that was loaded a moment ago, without waiting for files.

    None where it must be loaded. Raises `PrepareError`.
    """
    if request.strategy is not UNSET or request.tools or request.strategy_path is UNSET:
        return None
    settings = _settings(request, None, config)
    found = config.memory.find(settings)
    if found is None or store.exists(run_id):
        return None
    return Prepared(
        kind="new",
        settings=settings,
        strategy=found.strategy,
        registry=config.registry.copy(),
        conversation=conversation([]),
        journal=read_journal([], rebuilding_tools()),
        limits=_limits(request),
        selection=_selection(run_id, None, {}, store),
    )


def _prepare(
    request: PrepareRun,
    run_id: str,
    config: RunsConfig,
    store: RunStore,
    *,
    in_memory: bool,
    tools: Sequence[Tool],
) -> Prepared:
    events = store.timeline(run_id) if request.run_id is not UNSET else []
    before = latest_start(events)
    if before is None and in_memory:
        raise PrepareError(f"Run already exists: {run_id}")
    registry = config.registry.copy()
    for tool in tools:
        if config.registry.find_tool(tool.name) is not None:
            # A timeline that says run_command means ours, with its sandbox and permissions.
            raise PrepareError(f"{tool.name} is a tool of stringd: offer yours by another name")
        registry.tool(tool)
    earlier = store.kept_strategy(run_id) if request.strategy is not UNSET else None
    if request.strategy is not UNSET:
        request = _kept(request, request.strategy, run_id, store)
    if before is None and request.strategy_path is UNSET:
        raise PrepareError(f"Run not found: {run_id}")
    settings = _settings(request, before, config)
    manifest = settings.manifest_path
    where = Path(settings.cwd) / manifest if manifest else None
    try:
        # What a client brought is there for its own runs alone.
        own = bool(tools) or request.strategy is not UNSET
        loaded = load_all(settings, where, config, registry, remember=not own)
    except BaseException:
        if request.strategy is not UNSET:
            _put_back(earlier, run_id, store)
        raise
    return Prepared(
        kind="new" if before is None else "continuation",
        settings=settings,
        strategy=loaded.strategy,
        registry=loaded.registry,
        conversation=conversation(events),
        journal=read_journal(events, rebuilding_tools()),
        limits=_limits(request),
        skills=loaded.skills,
        servers=loaded.servers,
        selection=_selection(run_id, before, loaded.servers, store),
    )


def _selection(
    run_id: str,
    before: RunStarted | None,
    known: Mapping[str, ServerDefinition],
    store: RunStore,
) -> list[str]:
    """The MCP servers chosen for a run, now if not before.

    A choice that the machine lost is the one that the run started with.
    """
    chosen = store.selection(run_id)
    if chosen is not None:
        return chosen
    if before is not None and before.enabled_mcp_server_ids is not UNSET:
        chosen = before.enabled_mcp_server_ids
    else:
        chosen = default_selection(known)
    try:
        # Nothing of a prepared run need survive the machine; its start says the same again.
        store.save_selection(run_id, chosen, synced=False)
    except OSError as error:
        raise PrepareError(
            f"Cannot keep the choice of MCP servers: {error.strerror or error}. "
            "Make room in the data directory and prepare the run again."
        ) from error
    return chosen


def _kept(
    request: PrepareRun, strategy: Mapping[str, Any], run_id: str, store: RunStore
) -> PrepareRun:
    """The request with a strategy that came with it in a file, so that it can be resumed."""
    if request.strategy_path is not UNSET:
        raise PrepareError("Give strategyPath or strategy, not both")
    path = store.keep_strategy(run_id, msgspec.json.encode(strategy))
    return replace(request, strategy_path=str(path))


def _put_back(earlier: KeptStrategy | None, run_id: str, store: RunStore) -> None:
    """What cannot be used takes nothing from a run that had a strategy before."""
    if earlier is None:
        store.drop_strategy(run_id)
    else:
        store.keep_strategy(run_id, earlier.data)


class LoadedStrategy(NamedTuple):
    """A strategy with everything it names."""

    strategy: d.Strategy
    registry: Registry
    skills: Sequence[Skill]
    servers: Mapping[str, ServerDefinition]


def load_all(
    settings: RunSettings,
    manifest: Path | None,
    config: RunsConfig,
    registry: Registry | None = None,
    *,
    remember: bool = False,
) -> LoadedStrategy:
    """Everything from one look at the files. `registry` is what a project's code adds to.

    With `remember` the next run with these settings may do without that look.

    Raises `PrepareError` or `StrategyFileError`.
    """
    cwd, files = Path(settings.cwd), config.files()
    known = (registry or config.registry).copy()
    remember = remember and manifest is None and Path(settings.strategy_path).is_absolute()
    marks = {each: mark(each) for each in _looked_at(settings, config)} if remember else {}
    if manifest is None:
        manifest = find_project(settings.strategy_path, config.data_dir)
    if manifest is not None:
        load_project(manifest, known, files, config.data_dir)
    strategy = load(settings, known, config.data_dir, files)
    skills = find_skills(config.data_dir, cwd, files)
    check_skills(strategy, skills)
    servers = definitions(config.data_dir, cwd, strategy, files)
    check_servers(strategy, servers)
    if remember and files.read_marks is not None and not servers and not skills.skills:
        config.memory.keep(settings, RememberedStrategy(strategy), {**marks, **files.read_marks})
    return LoadedStrategy(strategy, known, skills.skills, servers)


def _looked_at(settings: RunSettings, config: RunsConfig) -> Iterator[str]:
    """What a strategy depends on besides the files it is read from, where there are no skills."""
    yield str(config.trust.file)
    for folder in (config.data_dir, *(Path(settings.cwd, each) for each in PROJECT_FOLDERS)):
        yield str(folder / "skills")
        yield str(folder / "mcp.json")


def _settings(request: PrepareRun, before: RunStarted | None, config: RunsConfig) -> RunSettings:
    """Each setting: the request's, else the latest segment's, else the daemon's default."""
    override = request.model_override or (before and before.model_override) or None
    manifest = request.manifest_path or (before and before.manifest_path) or None
    return RunSettings(
        strategy_path=request.strategy_path or (before.strategy_path if before else ""),
        cwd=request.cwd or (before.cwd if before else str(config.project_dir)),
        model_override=override or config.model_override,
        manifest_path=manifest,
    )


def _limits(request: PrepareRun) -> RunLimits:
    budget = request.budget
    if budget is UNSET:
        return RunLimits()
    return RunLimits(
        tokens=budget.tokens or None,
        tool_calls=None if budget.tool_calls is UNSET else budget.tool_calls,
        seconds=budget.seconds or None,
        cost=None if budget.cost is UNSET else budget.cost,
    )


def check_skills(strategy: d.Strategy, skills: SkillsFound) -> None:
    """Raises `PrepareError` when an agent requires a skill nobody has, or one not trusted."""
    known = [skill.name for skill in skills.skills]
    for agent in strategy.agents.values():
        for wanted in agent.skills if isinstance(agent, d.LlmAgent) else ():
            if wanted not in known and wanted in skills.untrusted:
                raise skills.untrusted[wanted]
            if wanted not in known:
                raise PrepareError(
                    f'Agent "{agent.name}" requires unknown skill "{wanted}". '
                    f"Available skills: {', '.join(known) or 'none'}"
                )


def load_project(path: Path, registry: Registry, files: StrategyFiles, data_dir: Path) -> None:
    """Check a project and let its code register.

    Raises `StrategyFileError`.
    """
    manifest = read_manifest(path, files)
    StrategyPackages(data_dir).check_approved(manifest)
    check_agent_files(manifest)
    check_permissions(manifest)
    run_modules(manifest, registry, files)


def known_names(registry: Registry) -> KnownNames:
    """What a strategy may name, given what is registered."""
    return KnownNames(
        tools=tuple(registry.built_in),
        registered_tools=tuple(registry.tools),
        agent_types=tuple(registry.agents),
        flow_types=tuple(registry.flows),
    )


def check_strategy(
    path: Path, manifest: Path | None = None, data_dir: Path | None = None
) -> d.Strategy:
    """A strategy that uses what is built in and what its project registers.

    The project's code runs when the owner put it there or trusts it. Raises `StrategyFileError`.
    """
    registry = Registry()
    if manifest is not None:
        load_project(manifest, registry, StrategyFiles(data_dir), data_dir or Path())
    strategy = load_strategy(path, known_names(registry))
    _check_custom_configs(strategy, registry)
    return strategy


def check_source(source: Path | Mapping[str, Any]) -> Mapping[str, Any]:
    """What a strategy file says, or would say, if its shape is right.

    Raises `StrategyFileError`.
    """
    if isinstance(source, Path):
        read = read_source(source)
        value, issues = read.value, STRATEGY.check(read.value)
        lines = [read.describe(issue) for issue in issues]
    else:
        value, issues = source, STRATEGY.check(dict(source))
        found = (each for issue in issues for each in (issue, *issue.leaves()))
        lines = [f"{dotted(each.path)}: {each.problem}" for each in found]
    if lines:
        text = "\n".join(f"  - {line}" for line in lines)
        raise StrategyFileError(f"Strategy validation failed:\n{text}")
    return dict(value)


def load(
    settings: RunSettings, registry: Registry, data_dir: Path, files: StrategyFiles
) -> d.Strategy:
    """Find, read and check a strategy. Raises `PrepareError` or `StrategyFileError`."""
    cwd = Path(settings.cwd)
    project = cwd / settings.manifest_path if settings.manifest_path else None
    path = find(settings.strategy_path, cwd, data_dir, project)
    if not path.is_file():
        raise _not_found(settings, files)
    strategy = load_strategy(
        path,
        known_names(registry),
        model_override=settings.model_override,
        files=files,
        cwd=cwd,
    )
    _check_custom_configs(strategy, registry)
    return strategy


def _not_found(settings: RunSettings, files: StrategyFiles) -> RunServiceError:
    """What is missing; a name the workspace offers and nobody has trusted is told as such."""
    told = f"Strategy file not found: {settings.strategy_path}"
    offered = (Path(each) for each in files.content(Path(settings.cwd)).files)
    meant = next((each for each in offered if each.stem == settings.strategy_path), None)
    if meant is None or files.state(Path(settings.cwd)) == "trusted":
        return PrepareError(told)
    untrusted = files.needs_trust(meant)
    return UntrustedError(f"{told}. {untrusted}", untrusted.path)


def _check_custom_configs(strategy: d.Strategy, registry: Registry) -> None:
    for agent in strategy.agents.values():
        if isinstance(agent, d.CustomAgent):
            _check_config("Agent", agent, registry.agents[agent.type])
    for flow in d.flows_within(strategy.flow):
        if isinstance(flow, d.CustomFlow):
            _check_config("Flow", flow, registry.flows[flow.type])


def _check_config(what: str, each: d.CustomAgent | d.CustomFlow, known: CustomType) -> None:
    issues = known.config.check(each.config or {}, ("config",)) if known.config else []
    if issues:
        lines = "\n".join(f"  - {dotted(issue.path)}: {issue.problem}" for issue in issues)
        raise StrategyFileError(
            f'{what} "{each.name}" configuration validation failed for type "{each.type}":\n{lines}'
        )

"""A strategy file becomes a `Strategy`, or one error that tells its author everything wrong."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Final

import msgspec

from stringd.formats.closest import closest_first
from stringd.formats.shapes import Issue
from stringd.runs.errors import StrategyFileError, UntrustedError
from stringd.runs.strategy import definition as d
from stringd.runs.strategy.acp_commands import ACP_COMMANDS
from stringd.runs.strategy.files import (
    LeadsOutError,
    StrategyFiles,
    trust_line,
    workspace_root,
)
from stringd.runs.strategy.schema import BUILT_IN_FLOWS, STRATEGY
from stringd.runs.strategy.source import REMEMBERED, StrategySource, parse, read_source
from stringd.system.safe_open import NotAFileError
from stringd.system.sandbox import Level

BUILT_IN_AGENTS = ("llm", "user")
# A megabyte of prompt is more than any model reads.
MAX_PROMPT_BYTES: Final = 1024 * 1024


@dataclass(frozen=True)
class KnownNames:
    """Names a strategy may refer to besides its own agents."""

    tools: tuple[str, ...] = ()
    registered_tools: tuple[str, ...] = ()
    agent_types: tuple[str, ...] = ()
    flow_types: tuple[str, ...] = ()


def load_strategy(
    path: Path,
    known: KnownNames,
    *,
    model_override: str | None = None,
    files: StrategyFiles | None = None,
    cwd: Path | None = None,
) -> d.Strategy:
    """Read, check and resolve one file. Raises `StrategyFileError`.

    Without `files` it counts as foreign. Prompts of a foreign file must be in its repository, in
    `cwd` or in its own folder.
    """
    files = files or StrategyFiles()
    source = read_source(path, files=files)
    issues = _issues(source)
    if issues:
        raise StrategyFileError(_validation_text(source, issues))
    strategy = _strategy(source, _Prompts(source, files, path, cwd or path.parent))
    _check_agents(strategy, known, model_override)
    if source.provenance == "foreign" and any(
        isinstance(each, d.AcpAgent) for each in strategy.agents.values()
    ):
        # It would start a program of its choice.
        raise files.needs_trust(path)
    for flow in d.flows_within(strategy.flow):
        _check_flow(flow, strategy, known)
    return strategy


def _issues(source: StrategySource) -> Sequence[Issue]:
    if len(source.text) > REMEMBERED:
        return STRATEGY.check(source.value)
    return _remembered_issues(source.text, source.form)


@lru_cache(maxsize=32)
def _remembered_issues(text: str, form: str) -> Sequence[Issue]:
    return tuple(STRATEGY.check(parse(text, form)[0]))


def _validation_text(source: StrategySource, issues: Sequence[Issue]) -> str:
    lines = "\n".join(f"  - {source.describe(issue)}" for issue in issues)
    return f"Strategy validation failed:\n{lines}"


def _strategy(source: StrategySource, prompts: "_Prompts") -> d.Strategy:
    raw: Mapping[str, Any] = source.value
    return d.Strategy(
        name=raw["name"],
        version=raw["version"],
        path=source.path,
        agents={name: _agent(name, agent, prompts) for name, agent in raw["agents"].items()},
        flow=flow_of(raw["flow"]),
        flow_tree=msgspec.Raw(msgspec.json.encode(raw["flow"])),
        source=raw,
        mcp_servers=raw.get("mcpServers", {}),
        sandbox=Level(raw.get("sandbox", Level.OPEN)),
        provenance=source.provenance,
    )


def _agent(name: str, raw: Mapping[str, Any], prompts: "_Prompts") -> d.AgentDefinition:
    match raw.get("type"):
        case "user":
            config = raw.get("config", {})
            return d.UserAgent(
                name,
                require_input=config.get("requireInput", True),
                preset_message=config.get("presetMessage"),
            )
        case None | "llm":
            return _llm_agent(name, raw, prompts)
        case "acp":
            return _acp_agent(name, raw, prompts)
        case type_:
            return d.CustomAgent(name, type_, raw.get("config"))


def _llm_agent(name: str, raw: Mapping[str, Any], prompts: "_Prompts") -> d.LlmAgent:
    system = raw.get("systemPrompt")
    return d.LlmAgent(
        name=name,
        model=raw.get("model"),
        system_prompt=None if system is None else prompts.read(system, "System prompt")[0],
        template=_template(raw.get("systemPromptTemplate"), prompts),
        tools=tuple(raw.get("tools", ())),
        mcp_servers=tuple(raw.get("mcpServers", ())),
        skills=tuple(raw.get("skills", ())),
        provider_options=raw.get("providerOptions", {}),
        model_options=raw.get("modelOptions", {}),
        output_schema=raw.get("outputSchema"),
        retention=_retention(raw.get("context", {})),
        max_steps=int(raw.get("maxSteps", 100)),
        base_dir=prompts.folder,
    )


def _acp_agent(name: str, raw: Mapping[str, Any], prompts: "_Prompts") -> d.AcpAgent:
    if ("agent" in raw) == ("command" in raw):
        known = ", ".join(ACP_COMMANDS)
        raise StrategyFileError(
            f'Agent "{name}" of type acp needs either agent (one of {known}) or command.'
        )
    label = raw.get("agent") or raw["command"][0]
    system = raw.get("systemPrompt")
    return d.AcpAgent(
        name=name,
        label=label,
        command=tuple(raw.get("command") or ACP_COMMANDS[label]),
        environment=raw.get("env", {}),
        system_prompt=None if system is None else prompts.read(system, "System prompt")[0],
    )


def _template(raw: Mapping[str, Any] | None, prompts: "_Prompts") -> d.PromptTemplate | None:
    if raw is None:
        return None
    text, untrusted = prompts.read(raw["template"], "System prompt template")
    return d.PromptTemplate(text, raw.get("variables", {}), untrusted)


def prompt_files(path: Path) -> list[Path]:
    """The files a strategy's prompts stand in; none for a file that is not a strategy."""
    try:
        value = read_source(path).value
    except StrategyFileError:
        return []
    agents = [] if STRATEGY.check(value) else value["agents"].values()
    texts = [
        text
        for agent in agents
        for text in (
            agent.get("systemPrompt"),
            (agent.get("systemPromptTemplate") or {}).get("template"),
        )
    ]
    return [file for text in texts if (file := _prompt_file(text, path.parent))]


def _prompt_file(value: str | None, folder: Path) -> Path | None:
    if value is None or not value.endswith((".txt", ".md")):
        return None
    return folder / os.path.expanduser(value)  # noqa: PTH111  # text may not be a path at all


class _Prompts:
    """Reads the prompts of one strategy."""

    def __init__(self, source: StrategySource, files: StrategyFiles, path: Path, cwd: Path) -> None:
        self.folder = source.path.parent
        self._source = source
        self._files = files
        self._path = path
        self._cwd = cwd

    @cached_property
    def _root(self) -> Path | None:
        """The folder they must be in, if any."""
        foreign = self._source.provenance == "foreign"
        return workspace_root(self._path, self._cwd) if foreign else None

    def read(self, value: str, what: str) -> tuple[str, str | None]:
        """Text as it is, or the content of the `.txt` or `.md` file it names.

        With it comes why it is not trusted, if it is not.
        """
        path = _prompt_file(value, self.folder)
        if path is None:
            foreign = self._source.provenance == "foreign"
            return value, str(self._files.needs_trust(self._source.path)) if foreign else None
        try:
            read = self._files.read(path, MAX_PROMPT_BYTES, self._root)
            text = read.data.decode()
        except (FileNotFoundError, NotADirectoryError, NotAFileError):
            raise StrategyFileError(f"{what} file not found: {path}") from None
        except LeadsOutError:
            raise UntrustedError(
                f"{what} file {path} is outside {self._root}. If the strategy may read it: "
                f"{trust_line(self._source.path)}",
                str(self._source.path),
            ) from None
        except (OSError, UnicodeDecodeError, ValueError) as error:
            raise StrategyFileError(f"Cannot read {what.lower()} file {path}: {error}") from None
        foreign = "foreign" in (read.provenance, self._source.provenance)
        return text, str(self._files.needs_trust(self._source.path)) if foreign else None


def _retention(raw: Mapping[str, Any]) -> d.RetentionRule:
    window = raw.get("rollingWindow")
    compaction = raw.get("compaction", True)
    details = compaction if isinstance(compaction, dict) else {}
    threshold = details.get("threshold")
    limit = window.get("maxRecords") if isinstance(window, dict) else window
    return d.RetentionRule(
        max_records=None if limit is None else int(limit),
        compaction=compaction is not False,
        keep_recent=int(details.get("keepRecent", 8)),
        threshold=None if threshold is None else int(threshold),
    )


def _step(raw: Mapping[str, Any]) -> d.Step:
    if "agent" in raw:
        return d.AgentStep(raw["agent"])
    if "approve" in raw and "type" not in raw:
        return d.ApproveStep(raw.get("name", "approve"), raw["approve"])
    return flow_of(raw)


def flow_of(raw: Mapping[str, Any]) -> d.FlowDefinition:
    """The flow a valid file describes. Raises `LookupError`, `TypeError` or `ValueError` else."""
    name, steps = raw["name"], tuple(_step(step) for step in raw["steps"])
    match raw["type"]:
        case "sequential":
            return d.SequentialFlow(name, steps)
        case "broadcast":
            return d.BroadcastFlow(name, steps, raw.get("separator", "\n\n"), raw.get("parallel"))
        case "cycle":
            return _cycle(raw, name, steps)
        case type_:
            return d.CustomFlow(name, steps, type_, raw.get("config"))


def _cycle(raw: Mapping[str, Any], name: str, steps: tuple[d.Step, ...]) -> d.CycleFlow:
    cycles = raw.get("cycles", 1)
    return d.CycleFlow(
        name,
        steps,
        cycles=None if cycles == "Infinity" else int(cycles),
        observer=raw.get("observer"),
        signals=tuple(raw.get("breakCycleSignals", d.CycleFlow.signals)),
        match=raw.get("breakCycleSignalMatch", d.CycleFlow.match),
        approve=raw.get("approve"),
    )


def _check_agents(strategy: d.Strategy, known: KnownNames, model_override: str | None) -> None:
    for agent in strategy.agents.values():
        if isinstance(agent, d.LlmAgent):
            _check_llm_agent(agent, known, model_override)
        elif isinstance(agent, d.CustomAgent) and agent.type not in known.agent_types:
            raise StrategyFileError(
                f'Agent "{agent.name}" references unknown agent type "{agent.type}". '
                f"Built-in agents: {_names(BUILT_IN_AGENTS)}. "
                f"Registered agents: {_names(known.agent_types, agent.type)}."
            )


def _check_llm_agent(agent: d.LlmAgent, known: KnownNames, model_override: str | None) -> None:
    if not (agent.model and agent.model.strip()) and model_override is None:
        raise StrategyFileError(
            f'Agent "{agent.name}" has no model. Set a model on the agent definition.'
        )
    for tool in agent.tools:
        if tool not in known.tools and tool not in known.registered_tools:
            raise StrategyFileError(
                f'Agent "{agent.name}" references unknown tool "{tool}". '
                f"Built-in tools: {_names(known.tools, tool)}. "
                f"Registered tools: {_names(known.registered_tools, tool)}. Custom tools: []."
            )


def _check_flow(flow: d.FlowDefinition, strategy: d.Strategy, known: KnownNames) -> None:
    if isinstance(flow, d.CustomFlow) and flow.type not in known.flow_types:
        raise StrategyFileError(
            f'Flow "{flow.name}" references unknown flow type "{flow.type}". '
            f"Built-in flows: {_names(BUILT_IN_FLOWS)}. "
            f"Registered flows: {_names(known.flow_types, flow.type)}."
        )
    named = [step.agent for step in flow.steps if isinstance(step, d.AgentStep)]
    if isinstance(flow, d.CycleFlow) and flow.observer is not None:
        named.append(flow.observer)
    for agent in named:
        if agent not in strategy.agents:
            raise StrategyFileError(
                f'Flow "{flow.name}" references agent "{agent}" which is not defined. '
                f"Available agents: {_names(tuple(strategy.agents), agent)}."
            )


def _names(names: tuple[str, ...], meant: str = "") -> str:
    """What there is, the closest to what was meant first."""
    return f"[{', '.join(closest_first(meant, names) if meant else names)}]"

"""A checked strategy as values the engine walks."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from msgspec import Raw

from stringd.runs.strategy.files import Provenance
from stringd.system.sandbox import Level

MatchMode = Literal["substring", "first-line", "any-line", "exact"]


@dataclass(frozen=True)
class UserAgent:
    name: str
    require_input: bool = True
    preset_message: str | None = None


@dataclass(frozen=True)
class RetentionRule:
    """How much of an agent's memory its model sees. `None` switches a rule off."""

    max_records: int | None = None
    compaction: bool = True
    keep_recent: int = 8
    threshold: int | None = None


@dataclass(frozen=True)
class PromptTemplate:
    """Liquid source, read when the strategy is loaded and rendered at every call.

    `untrusted` says why it may not use the filters that read or run something.
    """

    text: str
    variables: Mapping[str, Any] = field(default_factory=dict)
    untrusted: str | None = None


@dataclass(frozen=True)
class LlmAgent:
    name: str
    model: str | None
    system_prompt: str | None = None
    template: PromptTemplate | None = None
    tools: tuple[str, ...] = ()
    mcp_servers: tuple[str, ...] = ()
    skills: tuple[str, ...] = ()
    provider_options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    model_options: Mapping[str, float] = field(default_factory=dict)
    output_schema: Mapping[str, Any] | None = None
    retention: RetentionRule = RetentionRule()
    max_steps: int = 100
    base_dir: Path = Path()


@dataclass(frozen=True)
class CustomAgent:
    name: str
    type: str
    config: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class AcpAgent:
    """A coding agent of the user's, started by a command. `label` is what it is called."""

    name: str
    label: str
    command: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    system_prompt: str | None = None


AgentDefinition = UserAgent | LlmAgent | CustomAgent | AcpAgent


@dataclass(frozen=True)
class AgentStep:
    agent: str

    @property
    def name(self) -> str:
        return self.agent


@dataclass(frozen=True)
class ApproveStep:
    """A human reads `text` and what came so far, and says yes, no, or what to use instead."""

    name: str
    text: str


@dataclass(frozen=True)
class SequentialFlow:
    name: str
    steps: tuple["Step", ...]


@dataclass(frozen=True)
class CycleFlow:
    """`cycles` is None when it runs until a signal or a stop.

    `approve` is what a human is asked before it may end.
    """

    name: str
    steps: tuple["Step", ...]
    cycles: int | None = 1
    observer: str | None = None
    signals: tuple[str, ...] = ("end cycle", "stop", "done")
    match: MatchMode = "substring"
    approve: str | None = None


@dataclass(frozen=True)
class BroadcastFlow:
    """`parallel` None is what the daemon is set to."""

    name: str
    steps: tuple["Step", ...]
    separator: str = "\n\n"
    parallel: bool | None = None


@dataclass(frozen=True)
class CustomFlow:
    name: str
    steps: tuple["Step", ...]
    type: str
    config: Mapping[str, Any] | None = None


FlowDefinition = SequentialFlow | CycleFlow | BroadcastFlow | CustomFlow
Step = AgentStep | ApproveStep | FlowDefinition


def flows_within(flow: FlowDefinition) -> Iterator[FlowDefinition]:
    """The flow itself and every flow nested in it, outermost first."""
    yield flow
    for step in flow.steps:
        if not isinstance(step, AgentStep | ApproveStep):
            yield from flows_within(step)


@dataclass(frozen=True)
class Strategy:
    """`flow_tree` is the file's flow object as it is, encoded once for the wire.

    `sandbox` narrows what the owner allows its commands, and never widens it. `provenance` is
    whose word the file is.
    """

    name: str
    version: str
    path: Path
    agents: Mapping[str, AgentDefinition]
    flow: FlowDefinition
    flow_tree: Raw
    source: Mapping[str, Any]
    mcp_servers: Mapping[str, Any] = field(default_factory=dict)
    sandbox: Level = Level.OPEN
    provenance: Provenance = "foreign"

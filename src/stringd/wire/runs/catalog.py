"""Values of the messages about providers, the trash, the hub and strategies at hand."""

from typing import Any, Literal

from msgspec import UNSET, UnsetType

from stringd.wire.runs.types import Value


class ModelInfo(Value, kw_only=True):
    id: str
    name: str | UnsetType = UNSET
    family: str | UnsetType = UNSET
    context_window: int | UnsetType = UNSET
    max_input_tokens: int | UnsetType = UNSET
    max_output_tokens: int | UnsetType = UNSET
    knowledge_cutoff: str | UnsetType = UNSET
    release_date: str | UnsetType = UNSET
    last_updated: str | UnsetType = UNSET
    status: Literal["alpha", "beta", "deprecated"] | UnsetType = UNSET
    modalities: dict[str, list[str]] | UnsetType = UNSET
    capabilities: dict[str, bool] | UnsetType = UNSET
    cost: dict[str, float] | UnsetType = UNSET


class AvailableModel(ModelInfo, kw_only=True):
    has_credentials: bool
    providers: list[str]
    configured_providers: list[str]


class ProviderInfo(Value, kw_only=True):
    id: str
    name: str
    credential_type: Literal["api", "oauth", "custom", "none"]
    auth_status: Literal["none", "configured"]
    models: list[ModelInfo]
    models_source: Literal["catalog", "live", "merged", "error"]
    fetched_at: str | UnsetType = UNSET
    error: str | UnsetType = UNSET
    is_custom: bool
    usable: bool | UnsetType = UNSET
    """Ours, as the next three: whether a run could ask it now."""
    credential_source: Literal["strategy", "environment", "stored"] | UnsetType = UNSET
    credential_variable: str | UnsetType = UNSET
    """The variable of the daemon's environment that holds its key."""
    key_variables: list[str] | UnsetType = UNSET
    """The variables a key of it may be in."""


class TrashMetadata(Value, kw_only=True):
    trashed_at: str
    original_path: str
    original_sha256: str
    session_id: str | UnsetType = UNSET
    run_id: str | UnsetType = UNSET
    agent_name: str | UnsetType = UNSET


class TrashEntry(Value, kw_only=True):
    path: str
    metadata: TrashMetadata
    size_bytes: int


class TrashWorkspace(Value, kw_only=True):
    cwd: str
    entries: list[TrashEntry]


class InstalledHubPackage(Value, kw_only=True):
    """`source` (ours) is what installs it again."""

    name: str
    version: str
    commit: str
    path: str
    executable_code_approved: bool
    source: str | UnsetType = UNSET


class HubExport(Value, kw_only=True):
    id: str
    ref: str
    path: str
    description: str | UnsetType = UNSET


class HubExports(Value, kw_only=True):
    strategies: list[HubExport]
    agents: list[HubExport]
    flows: list[HubExport]
    tools: list[HubExport]


class HubPackage(Value, kw_only=True):
    name: str
    version: str
    description: str | UnsetType = UNSET
    license: str | UnsetType = UNSET
    path: str
    author: Any = UNSET
    contributors: Any = UNSET
    keywords: list[str] | UnsetType = UNSET
    exports: HubExports
    environment: Any = UNSET
    permissions: Any = UNSET
    links: Any = UNSET


class StandingDecision(Value, kw_only=True):
    """Ours: what counts for the rest of a live run.

    `kind` is `session` for an answer to a request, `policy` for a glob of `update_policy`.
    """

    decision_id: str
    tool_name: str
    decision: Literal["allow", "deny"]
    operation: Literal["fs.read", "fs.write", "fs.exec"]
    resource: str
    kind: Literal["session", "policy"]


class DiscoveredStrategy(Value, kw_only=True):
    """A strategy file at hand. `manifest_path` is its project's, to prepare it with."""

    name: str
    label: str
    description: str | UnsetType = UNSET
    path: str
    origin: str
    manifest_path: str | UnsetType = UNSET


class StrategyWarning(Value, kw_only=True):
    """A file that looks like a strategy and is none."""

    path: str
    reason: str


class CompletedStep(Value, kw_only=True):
    """Ours: a step of the entry flow. `path` names it in cycles too, `c2.0` is in round two."""

    path: str
    name: str
    completed_at: str


class ForkOrigin(Value, kw_only=True):
    """Ours: the step of another run that a run began after."""

    run_id: str
    path: str
    step: str


class WaitingPrompt(Value, kw_only=True):
    """What a run on disk waits for: an input, the answer to a question, or a permission."""

    kind: Literal["input", "question", "permission"]
    request_id: str
    agent_name: str
    question: str | UnsetType = UNSET
    tool_name: str | UnsetType = UNSET
    operation: str | UnsetType = UNSET
    resource: str | UnsetType = UNSET
    details: dict[str, Any] | UnsetType = UNSET


class RunActivity(Value, kw_only=True):
    """Ours: what happened in a run beside what was said. Absent keys do not apply to its kind."""

    kind: Literal["tool", "permission", "answer", "change"]
    at: str
    ended_at: str | UnsetType = UNSET
    agent_name: str | UnsetType = UNSET
    tool_name: str | UnsetType = UNSET
    args: str | UnsetType = UNSET
    output: str | UnsetType = UNSET
    status: Literal["completed", "error"] | UnsetType = UNSET
    operation: str | UnsetType = UNSET
    resource: str | UnsetType = UNSET
    decision: str | UnsetType = UNSET
    reason: str | UnsetType = UNSET
    question: str | UnsetType = UNSET
    text: str | UnsetType = UNSET
    diff: str | UnsetType = UNSET

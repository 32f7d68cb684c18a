"""Messages from the daemon: replies to one client, and broadcasts to a run's subscribers."""

from typing import Any, Literal

from msgspec import UNSET, Raw, Struct, UnsetType

import stringd.wire.runs.catalog as catalog
from stringd.wire.runs.requests import Budget
from stringd.wire.runs.stream import AgentStreamEvent
from stringd.wire.runs.types import (
    AgentCallResult,
    ContextUsage,
    ConversationHistory,
    ErrorInfo,
    McpServerStatus,
    PolicyName,
    RunOverview,
    RunSummary,
    Usage,
)


class Message(Struct, rename="camel", kw_only=True, tag_field="type"):
    """`ts` is stamped when the message leaves; until then it is empty."""

    ts: str = ""
    request_id: Any = UNSET


class Pong(Message, tag="pong", kw_only=True):
    pass


class Error(Message, tag="error", kw_only=True):
    """`run_id` and `next_seq` are ours, on `SUBSCRIBER_BEHIND` and `EVENTS_GONE` only.

    `trust` is ours too: what the owner could trust so that the request works.
    """

    code: str
    message: str
    run_id: str | UnsetType = UNSET
    next_seq: int | UnsetType = UNSET
    trust: str | UnsetType = UNSET


class RunPrepared(Message, tag="run_prepared", kw_only=True):
    """`last_seq` is ours: the number of the last broadcast so far, absent before the first."""

    run_id: str
    strategy_name: str
    agents: list[str]
    flow_tree: Raw
    conversation: ConversationHistory
    mcp_servers: list[McpServerStatus] = []
    last_seq: int | UnsetType = UNSET


class StrategyList(Message, tag="strategy_list", kw_only=True):
    runs: list[RunSummary]


class RunList(Message, tag="run_list", kw_only=True):
    runs: list[RunOverview]


class ProviderList(Message, tag="provider_list", kw_only=True):
    providers: list[catalog.ProviderInfo]


class AvailableModels(Message, tag="available_models", kw_only=True):
    models: list[catalog.AvailableModel]


class ProviderRegistered(Message, tag="provider_registered", kw_only=True):
    provider_id: str


class ProviderUnregistered(Message, tag="provider_unregistered", kw_only=True):
    provider_id: str


class CredentialSet(Message, tag="credential_set", kw_only=True):
    provider_id: str
    credential_type: Literal["api", "oauth", "custom"]


class CredentialRemoved(Message, tag="credential_removed", kw_only=True):
    """Ours, in answer to `remove_credential`; whether anything was kept."""

    provider_id: str
    removed: bool


class McpServerList(Message, tag="mcp_server_list", kw_only=True):
    servers: list[McpServerStatus]


class TrashListResult(Message, tag="trash_list_result", kw_only=True):
    workspaces: list[catalog.TrashWorkspace]
    total_entries: int
    total_bytes: int


class TrashRestoreResult(
    Message,
    tag="trash_restore_result",
    rename={"from_": "from", "request_id": "requestId"},
    kw_only=True,
):
    restored: str
    from_: str


class TrashClearResult(Message, tag="trash_clear_result", kw_only=True):
    cleared: int
    bytes_freed: int


class HubPackages(Message, tag="hub_packages", kw_only=True):
    operation: Literal["list", "install", "update", "remove"]
    available: list[catalog.HubPackage] | UnsetType = UNSET
    installed: list[catalog.InstalledHubPackage] | UnsetType = UNSET
    installed_package: catalog.InstalledHubPackage | UnsetType = UNSET
    removed: bool | UnsetType = UNSET


class SteerDelivered(Message, tag="steer_delivered", kw_only=True):
    """Ours, to a sender who asked for a receipt: this agent's call took the text."""

    run_id: str
    text: str
    agent_name: str


class SteerUndelivered(Message, tag="steer_undelivered", kw_only=True):
    """Ours, to a sender who asked for a receipt: the segment ended before any call took it."""

    run_id: str
    text: str


class ToolAsked(Message, tag="tool_asked", kw_only=True):
    """Ours, to the client that offered the tool: carry this call out and send `tool_answer`."""

    run_id: str
    call_id: str
    agent_name: str
    tool_name: str
    args: dict[str, Any]


class RunTimeline(Message, tag="run_timeline", kw_only=True):
    """Ours, in answer to `get_timeline`: overview, conversation, and what the run waits for.

    The result of a completed run need not be the last thing said in it.
    """

    run: RunOverview
    conversation: ConversationHistory
    waiting: list[catalog.WaitingPrompt] = []
    result: str | UnsetType = UNSET
    error: ErrorInfo | UnsetType = UNSET
    steps: list[catalog.CompletedStep] = []
    """Those of the latest segment, in the order they were completed: a fork begins after one."""
    forked_from: catalog.ForkOrigin | UnsetType = UNSET
    activity: list[catalog.RunActivity] | UnsetType = UNSET
    """Only when it was asked for."""


class RunForked(Message, tag="run_forked", kw_only=True):
    """Ours, in answer to `fork_run`: the new run rests until `continue_run` with `resume`."""

    run_id: str
    forked_from: catalog.ForkOrigin


class RunDeleted(Message, tag="run_deleted", kw_only=True):
    """Ours, in answer to `delete_run`."""

    run_id: str


class DiscoveredStrategies(Message, tag="discovered_strategies", kw_only=True):
    """Ours, in answer to `discover_strategies`: what can be prepared, and files that cannot."""

    strategies: list[catalog.DiscoveredStrategy]
    warnings: list[catalog.StrategyWarning]


class DecisionList(Message, tag="decision_list", kw_only=True):
    """Ours, in answer to `list_decisions` and `revoke_decision`: what counts now, oldest first."""

    run_id: str
    decisions: list[catalog.StandingDecision]


class RunBroadcast(Message, kw_only=True):
    """`seq` counts a run's broadcasts without a gap, across segments and restarts."""

    run_id: str
    seq: int | UnsetType = UNSET


class StrategyStarted(RunBroadcast, tag="strategy_started", kw_only=True):
    """`budget` is ours: the limits of this segment, where there are any."""

    strategy_name: str
    agents: list[str]
    flow_tree: Raw
    budget: Budget | UnsetType = UNSET


class StrategyCompleted(RunBroadcast, tag="strategy_completed", kw_only=True):
    """`undelivered_steering` is ours: accepted texts no agent call was left to take."""

    result: str
    usage: Usage
    undelivered_steering: list[str] | UnsetType = UNSET


class StrategyError(RunBroadcast, tag="strategy_error", kw_only=True):
    error: ErrorInfo
    undelivered_steering: list[str] | UnsetType = UNSET


class StepStarted(RunBroadcast, tag="step_started", kw_only=True):
    step_name: str
    message: str


class StepCompleted(RunBroadcast, tag="step_completed", kw_only=True):
    step_name: str
    result: AgentCallResult


class AgentOutput(RunBroadcast, tag="agent_output", kw_only=True):
    agent_name: str
    model: str | UnsetType = UNSET
    context_window: int | UnsetType = UNSET
    text: str
    usage: Usage
    context_usage: ContextUsage | UnsetType = UNSET


class AgentStreaming(RunBroadcast, tag="agent_streaming", kw_only=True):
    agent_name: str
    model: str | UnsetType = UNSET
    context_window: int | UnsetType = UNSET
    event: AgentStreamEvent


class SteerQueued(RunBroadcast, tag="steer_queued", kw_only=True):
    text: str


class RequestInput(RunBroadcast, tag="request_input", kw_only=True):
    agent_name: str
    prompt: str | UnsetType = UNSET


class RequestQuestion(RunBroadcast, tag="request_question", kw_only=True):
    """`request_id` names the question; the answer quotes it."""

    agent_name: str
    tool_name: str = "ask_question"
    question: str


class RequestPermission(RunBroadcast, tag="request_permission", kw_only=True):
    """`request_id` names the request; the decision quotes it."""

    agent_name: str
    tool_name: str | UnsetType = UNSET
    operation: Literal["fs.read", "fs.write", "fs.exec"]
    resource: str
    reason: Literal["policy-ask", "policy-deny-override"] = "policy-ask"
    details: dict[str, Any] | UnsetType = UNSET


class PolicyUpdated(RunBroadcast, tag="policy_updated", kw_only=True):
    tool: str
    policies: list[PolicyName]


DaemonMessage = (
    Pong
    | Error
    | RunPrepared
    | StrategyList
    | RunList
    | ProviderList
    | AvailableModels
    | ProviderRegistered
    | ProviderUnregistered
    | CredentialSet
    | McpServerList
    | TrashListResult
    | TrashRestoreResult
    | TrashClearResult
    | HubPackages
    | SteerDelivered
    | RunTimeline
    | RunDeleted
    | RunForked
    | CredentialRemoved
    | DiscoveredStrategies
    | DecisionList
    | SteerUndelivered
    | ToolAsked
    | StrategyStarted
    | StrategyCompleted
    | StrategyError
    | StepStarted
    | StepCompleted
    | AgentOutput
    | AgentStreaming
    | SteerQueued
    | RequestInput
    | RequestQuestion
    | RequestPermission
    | PolicyUpdated
)

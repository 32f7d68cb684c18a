"""Values that several messages carry. An absent key is `UNSET`, never null, unless typed so."""

from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType

from stringd.wire.run_status import RunStatus


class Value(Struct, rename="camel", kw_only=True, omit_defaults=False):
    """Base of shared values: snake case here, camel case on the wire."""


class Usage(Value, kw_only=True):
    prompt_tokens: int = 0
    completion_tokens: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            completion_tokens=self.completion_tokens + other.completion_tokens,
        )


class ModelUsage(Value, kw_only=True):
    """Ours: what the calls of one model took; `model` is empty where none was recorded."""

    model: str
    prompt_tokens: int
    completion_tokens: int


class InputTokenDetails(Value, kw_only=True):
    no_cache_tokens: int | UnsetType = UNSET
    cache_read_tokens: int | UnsetType = UNSET
    cache_write_tokens: int | UnsetType = UNSET


class OutputTokenDetails(Value, kw_only=True):
    text_tokens: int | UnsetType = UNSET
    reasoning_tokens: int | UnsetType = UNSET


class ContextUsage(Value, kw_only=True):
    """Tokens that occupied the window at the last model round-trip of a call."""

    total_tokens: int
    input_tokens: int | UnsetType = UNSET
    output_tokens: int | UnsetType = UNSET
    input_token_details: InputTokenDetails | UnsetType = UNSET
    output_token_details: OutputTokenDetails | UnsetType = UNSET


class AgentCallResult(Value, kw_only=True):
    text: str
    usage: Usage
    context_usage: ContextUsage | UnsetType = UNSET
    finish_reason: str


class ErrorInfo(Value, kw_only=True):
    code: str
    message: str


class RunSummary(Value, kw_only=True):
    """A run this process knows. `queue_position` is ours: its place among those that wait."""

    run_id: str
    strategy_name: str
    status: RunStatus
    started_at: str
    completed_at: str | UnsetType = UNSET
    queue_position: int | UnsetType = UNSET


class RunOverview(Value, kw_only=True):
    """A run on disk. `completed_at` is null while it is unfinished.

    `damage` (ours) says what of its timeline cannot be read, `interrupted` (ours) that the daemon
    ended before the run did, `usage` (ours) what its models took over all segments, `last` (ours)
    how the latest segment failed, else the beginning of what was said last.
    """

    run_id: str
    cwd: str
    strategy_name: str
    strategy_path: str
    started_at: str
    completed_at: str | None
    status: RunStatus
    damage: str | UnsetType = UNSET
    interrupted: bool | UnsetType = UNSET
    usage: list[ModelUsage] | UnsetType = UNSET
    last: str | UnsetType = UNSET


class ConversationRecord(Value, kw_only=True):
    """One agent call. Message contents are kept as they were, extra keys included."""

    id: str
    agent_name: str
    created_at: str
    user_message: dict[str, Any]
    response_messages: list[dict[str, Any]]
    text: str
    usage: Usage
    context_usage: ContextUsage | UnsetType = UNSET
    finish_reason: str
    status: Literal["active", "superseded"] | UnsetType = UNSET
    superseded_by: str | UnsetType = UNSET

    def __post_init__(self) -> None:
        if self.user_message.get("role") != "user":
            raise ValueError("a record's user message has the role user")
        if any(m.get("role") not in ("assistant", "tool") for m in self.response_messages):
            raise ValueError("a record's response messages have the role assistant or tool")


class RetentionTrigger(Value, kw_only=True):
    model: str | UnsetType = UNSET
    context_usage: ContextUsage | UnsetType = UNSET
    token_limit: int | UnsetType = UNSET
    context_window: int | UnsetType = UNSET
    max_input_tokens: int | UnsetType = UNSET
    ratio: float | UnsetType = UNSET
    threshold_ratio: float | UnsetType = UNSET
    active_record_count: int | UnsetType = UNSET
    record_threshold: int | UnsetType = UNSET


class RetentionEvent(Value, kw_only=True):
    """Older records were replaced, for the model, by one summary record."""

    id: str
    agent_name: str
    created_at: str
    kind: Literal["compaction"] = "compaction"
    reason: Literal["context-window", "record-count"]
    trigger: RetentionTrigger
    records_compacted: int
    records_retained: int
    summary_record: ConversationRecord
    superseded_record_ids: list[str]
    insert_before_record_id: str | UnsetType = UNSET


class ConversationInput(Value, kw_only=True):
    text: str
    before_record_id: str | UnsetType = UNSET


class ConversationHistory(Value, kw_only=True):
    records: list[ConversationRecord] = []
    retention_events: list[RetentionEvent] = []
    inputs: list[ConversationInput] = []


class McpOrigin(Value, kw_only=True):
    server_id: str
    tool_name: str


class McpServerStatus(Value, kw_only=True):
    id: str
    source: Literal["global", "workspace", "strategy"]
    transport: Literal["http", "sse", "stdio"]
    enabled: bool
    enabled_by_default: bool
    connected: bool | UnsetType = UNSET
    tool_count: int
    assigned_agents: list[str]
    error: str | UnsetType = UNSET
    trusted: bool | UnsetType = UNSET
    """Ours: whether it is the owner's own, or what the owner trusts."""


class PolicyName(Value, kw_only=True):
    name: str

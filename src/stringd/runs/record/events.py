"""The append-only history of a run: its events, and what can be read back from them.

Keys marked *ours* are additions; readers ignore keys and event types they do not know.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, Literal

import msgspec
from msgspec import UNSET, Struct, UnsetType

from stringd.wire.runs.catalog import ForkOrigin
from stringd.wire.runs.types import (
    AgentCallResult,
    ContextUsage,
    ConversationRecord,
    ErrorInfo,
    RetentionEvent,
    Usage,
)

Ending = Literal["completed", "error", "cancelled"]
INTERRUPTED: Final = ErrorInfo(
    code="INTERRUPTED", message="The daemon stopped before this run ended. It can be resumed."
)
PromptKind = Literal["input", "question", "permission"]


class TimelineEvent(Struct, rename="camel", kw_only=True, tag_field="type"):
    ts: str


class RunStarted(TimelineEvent, tag="run_started", kw_only=True):
    """A segment begins. `resume` is ours: it continues where the one before it ended.

    `forked_from` is ours too: the steps that follow are another run's, which completed them.
    """

    strategy_path: str
    strategy_name: str
    cwd: str
    initial_input: str | UnsetType = UNSET
    manifest_path: str | UnsetType = UNSET
    model_override: str | UnsetType = UNSET
    enabled_mcp_server_ids: list[str] | UnsetType = UNSET
    mcp_servers: Any = UNSET
    resume: bool | UnsetType = UNSET
    forked_from: ForkOrigin | UnsetType = UNSET


class StepBegun(TimelineEvent, tag="step_started", kw_only=True):
    """`path` is ours."""

    step_name: str
    flow_name: str | UnsetType = UNSET
    agent_name: str | UnsetType = UNSET
    index: int | UnsetType = UNSET
    path: str | UnsetType = UNSET


class StepEnded(TimelineEvent, tag="step_completed", kw_only=True):
    """`path` and `result` are ours: a resumed run does not repeat what they say."""

    step_name: str
    flow_name: str | UnsetType = UNSET
    agent_name: str | UnsetType = UNSET
    index: int | UnsetType = UNSET
    path: str | UnsetType = UNSET
    result: AgentCallResult | UnsetType = UNSET


class AgentCall(TimelineEvent, tag="agent_call", kw_only=True):
    """`path` is ours: which call of the flow this was. `model` is ours: which model answered."""

    record: ConversationRecord
    path: str | UnsetType = UNSET
    model: str | UnsetType = UNSET


class ConversationRetention(TimelineEvent, tag="conversation_retention", kw_only=True):
    event: RetentionEvent


class RunCompleted(TimelineEvent, tag="run_completed", kw_only=True):
    status: Ending
    error: ErrorInfo | UnsetType = UNSET

    @property
    def interrupted(self) -> bool:
        """Whether the daemon was gone before the segment could end."""
        return isinstance(self.error, ErrorInfo) and self.error.code == INTERRUPTED.code


class HumanInput(TimelineEvent, tag="user_input", kw_only=True):
    """An answer, or an accepted steering text (then `agent_name` is empty). `by` is ours.

    `source` is `human` only for what came through a person's client.
    """

    agent_name: str
    text: str
    source: Literal["human", "agent"] = "human"
    by: "DecidedBy | UnsetType" = UNSET


class SteerRecorded(TimelineEvent, tag="steer_delivered", kw_only=True):
    """Ours: an agent's call took this steering text, after the round-trip `key` if it names one."""

    agent_name: str
    text: str
    key: str | UnsetType = UNSET


class DecidedBy(Struct, rename="camel", kw_only=True):
    """Who decided and by which way.

    A human, an agent or another program through a client, with the process behind it where that
    is known; or a policy by its name.
    """

    kind: Literal["human", "agent", "program", "policy"]
    via: str
    program: str | UnsetType = UNSET
    pid: int | UnsetType = UNSET

    @property
    def words(self) -> str:
        """Who decided, in a few words."""
        return f"{self.kind}, {self.program or self.via}"


class PermissionDecided(TimelineEvent, tag="permission_decision", kw_only=True):
    """`operation`, `decided_by`, `reason` and `command` (what runs instead) are ours."""

    decision: str
    agent_name: str | UnsetType = UNSET
    tool_name: str | UnsetType = UNSET
    resource: str | UnsetType = UNSET
    operation: str | UnsetType = UNSET
    decided_by: DecidedBy | UnsetType = UNSET
    reason: str | UnsetType = UNSET
    command: str | UnsetType = UNSET


class ModelTurn(TimelineEvent, tag="model_turn", kw_only=True):
    """Ours: an answer that asked for tools. `message` is what the call was about."""

    path: str
    index: int
    message: str
    answer: dict[str, Any]
    usage: Usage
    context_usage: ContextUsage | UnsetType = UNSET
    finish_reason: str


class ToolStarted(TimelineEvent, tag="tool_started", kw_only=True):
    """Ours: written before a tool runs. `key` names the call for good."""

    key: str
    agent_name: str
    tool_name: str
    args: str


class ToolWaiting(TimelineEvent, tag="tool_waiting", kw_only=True):
    """Ours: the call of that key asks a human first (`waiting`), or has been answered."""

    key: str
    waiting: bool


class PromptAsked(TimelineEvent, tag="prompt_asked", kw_only=True):
    """Ours: a human was asked, at this place of the flow, about exactly this."""

    key: str
    request_id: str
    kind: PromptKind
    agent_name: str
    about: str


class PromptAnswered(TimelineEvent, tag="prompt_answered", kw_only=True):
    """Ours: what the human said, perhaps when nobody was there any more to hear it."""

    request_id: str
    answer: str


class ToolFinished(TimelineEvent, tag="tool_finished", kw_only=True):
    """Ours: how the tool call of that key ended."""

    key: str
    output: str
    status: Literal["completed", "error"]
    error: str | UnsetType = UNSET


class ToolMutation(TimelineEvent, tag="tool_mutation", kw_only=True):
    agent_name: str
    tool_name: str
    operation: Literal["create", "update", "delete", "move"]
    path: str
    to_path: str | UnsetType = UNSET
    before_sha256: str | UnsetType = UNSET
    after_sha256: str | UnsetType = UNSET
    diff: str | UnsetType = UNSET
    success: bool
    error: str | UnsetType = UNSET
    details: Any = UNSET


AnyEvent = (
    RunStarted
    | StepBegun
    | StepEnded
    | AgentCall
    | ConversationRetention
    | RunCompleted
    | HumanInput
    | SteerRecorded
    | PermissionDecided
    | ToolMutation
    | ModelTurn
    | ToolStarted
    | ToolFinished
    | ToolWaiting
    | PromptAsked
    | PromptAnswered
)

_decoder: Final[msgspec.json.Decoder[AnyEvent]] = msgspec.json.Decoder(AnyEvent)
_encoder: Final = msgspec.json.Encoder()


def encode_event(event: TimelineEvent) -> bytes:
    """One event as one line."""
    return _encoder.encode(event) + b"\n"


def event_name(event: TimelineEvent) -> str:
    """What an event records, for somebody who is told that it is missing."""
    match event:
        case ToolStarted(tool_name=tool):
            return f"the call of tool `{tool}`"
        case ToolFinished():
            return "how a tool call ended"
        case StepBegun(step_name=name):
            return f'the start of step "{name}"'
        case StepEnded(step_name=name):
            return f'the result of step "{name}"'
        case AgentCall(record=record):
            return f"the answer of agent `{record.agent_name}`"
        case RunStarted():
            return "its start"
        case RunCompleted():
            return "its end"
        case _:
            return f"an event of type {type(event).__struct_config__.tag}"


def decode_events(lines: Iterable[bytes]) -> list[AnyEvent]:
    """Every line that is an event we know; torn, malformed and foreign lines are skipped."""
    return list(each_event(lines))


def each_event(
    lines: Iterable[bytes], damaged: Callable[[bytes], None] | None = None
) -> Iterator[AnyEvent]:
    """The same, one at a time: a timeline may be larger than what should be in memory.

    `damaged` is called with lines that no version of ours wrote so.
    """
    for line in lines:
        if line.strip():
            try:
                event: AnyEvent = _decoder.decode(line)
            except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
                # An event of a type we do not know is a later version's.
                if damaged is not None and not str(error).endswith("`$.type`"):
                    damaged(line)
            else:
                yield event

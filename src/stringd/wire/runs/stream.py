"""What an agent does while it is called: the events inside `agent_streaming`."""

from typing import Literal

from msgspec import UNSET, Struct, UnsetType

from stringd.wire.runs.types import AgentCallResult, McpOrigin, RetentionEvent


class StreamEvent(Struct, rename="camel", kw_only=True, tag_field="type"):
    pass


class StepStart(StreamEvent, tag="step-start", kw_only=True):
    """A model round-trip begins. `note` says why its answer takes longer than usual."""

    note: str | UnsetType = UNSET


class Text(StreamEvent, tag="text", kw_only=True):
    text: str


class ThinkingStart(StreamEvent, tag="thinking-start", kw_only=True):
    id: str


class Thinking(StreamEvent, tag="thinking", kw_only=True):
    id: str
    text: str


class ThinkingEnd(StreamEvent, tag="thinking-end", kw_only=True):
    id: str


class ToolCall(StreamEvent, tag="tool-call", kw_only=True):
    """`args` is compact JSON, as text."""

    tool_call_id: str
    tool_name: str
    args: str
    mcp: McpOrigin | UnsetType = UNSET


class ToolResult(StreamEvent, tag="tool-result", kw_only=True):
    """`status` is `error` only when the call could not be executed at all."""

    tool_call_id: str
    tool_name: str
    output: str
    status: Literal["completed", "error"]
    error: str | UnsetType = UNSET
    mcp: McpOrigin | UnsetType = UNSET


class Retention(StreamEvent, tag="retention", kw_only=True):
    event: RetentionEvent


class Done(StreamEvent, tag="done", kw_only=True):
    result: AgentCallResult


AgentStreamEvent = (
    StepStart
    | Text
    | ThinkingStart
    | Thinking
    | ThinkingEnd
    | ToolCall
    | ToolResult
    | Retention
    | Done
)

"""What a model must do: answer one request with a stream of events.

A model knows nothing of agents, memory or tools' effects; the agent loop calls it once per
round-trip and executes the tools it asks for.
"""

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from msgspec import UNSET

from stringd.wire.runs.types import ContextUsage, InputTokenDetails, OutputTokenDetails, Usage


class Tokens(NamedTuple):
    """What a provider reported for one round-trip. Unknown counts are None."""

    input: int | None = None
    output: int | None = None
    total: int | None = None
    no_cache: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    text: int | None = None
    reasoning: int | None = None

    def usage(self) -> Usage:
        return Usage(prompt_tokens=self.input or 0, completion_tokens=self.output or 0)

    def context_usage(self) -> ContextUsage | None:
        """Tokens in the window after this round-trip, when the provider said anything at all."""
        known = self.total is not None or self.input is not None or self.output is not None
        if not known:
            return None
        total = self.total if self.total is not None else (self.input or 0) + (self.output or 0)
        usage = ContextUsage(total_tokens=total)
        usage.input_tokens = UNSET if self.input is None else self.input
        usage.output_tokens = UNSET if self.output is None else self.output
        if (self.no_cache, self.cache_read, self.cache_write) != (None, None, None):
            usage.input_token_details = InputTokenDetails(
                no_cache_tokens=UNSET if self.no_cache is None else self.no_cache,
                cache_read_tokens=UNSET if self.cache_read is None else self.cache_read,
                cache_write_tokens=UNSET if self.cache_write is None else self.cache_write,
            )
        if (self.text, self.reasoning) != (None, None):
            usage.output_token_details = OutputTokenDetails(
                text_tokens=UNSET if self.text is None else self.text,
                reasoning_tokens=UNSET if self.reasoning is None else self.reasoning,
            )
        return usage


class Delayed(NamedTuple):
    """Nothing was asked yet, or it must be asked again; `why` is for people."""

    why: str


class Started(NamedTuple):
    """The provider began to answer."""


class TextDelta(NamedTuple):
    text: str


class ThinkingStarted(NamedTuple):
    id: str


class ThinkingDelta(NamedTuple):
    id: str
    text: str


class ThinkingEnded(NamedTuple):
    """`signature` is what a provider wants back with the thought, when it does.

    It is all there is of a `redacted` one.
    """

    id: str
    signature: str | None = None
    redacted: bool = False


class ToolRequested(NamedTuple):
    """`args` is the JSON text the model produced; it may not even be JSON."""

    id: str
    name: str
    args: str


class Finished(NamedTuple):
    tokens: Tokens = Tokens()
    reason: str = "stop"


ModelEvent = (
    Delayed
    | Started
    | TextDelta
    | ThinkingStarted
    | ThinkingDelta
    | ThinkingEnded
    | ToolRequested
    | Finished
)


class ToolOffer(NamedTuple):
    """A tool as the model sees it."""

    name: str
    description: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True)
class ModelRequest:
    """One round-trip. `turn` counts the agent's earlier round-trips, across restarts too.

    `kept` is the same for all requests of one agent, for what a model need not build again.
    Messages do not change once they were in a request; the conversation is only appended to,
    or replaced.
    """

    agent_name: str
    system: str | None
    messages: Sequence[Mapping[str, Any]]
    turn: int = 0
    tools: Sequence[ToolOffer] = ()
    options: Mapping[str, float] = field(default_factory=dict)
    provider_options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    output_schema: Mapping[str, Any] | None = None
    kept: dict[str, Any] = field(default_factory=dict)


class Price(NamedTuple):
    """US dollars for a million tokens."""

    input: float
    output: float


class Model(Protocol):
    """One model, ready to be asked. Limits are None when nobody knows them."""

    @property
    def context_window(self) -> int | None: ...

    @property
    def max_input_tokens(self) -> int | None: ...

    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Answer. Raises `ModelError` before or during the stream; closing it stops the work."""
        ...


@dataclass(frozen=True)
class ModelSetup:
    """What a provider may need to build a model for one agent."""

    model_id: str
    agent_name: str
    options: Mapping[str, Any]
    base_dir: Path


class Provider(Protocol):
    """Builds models by id. Raises `ModelError` when it cannot."""

    def model(self, setup: ModelSetup) -> Model: ...

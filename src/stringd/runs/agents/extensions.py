"""What code can add to strategies: agent types, flow types, tools and hooks.

A project's entry module offers `register(registry)` and calls the methods below.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from stringd.formats.shapes import Shape
from stringd.runs.agents.hooks import Hooks
from stringd.runs.tools.built_in import built_in_tools
from stringd.runs.tools.tool import Tool


class AgentCode(Protocol):
    """A custom agent: message and config in, text out."""

    def __call__(self, message: str, config: Mapping[str, Any]) -> Awaitable[str]: ...


class FlowSteps(Protocol):
    """What a custom flow may do: run one of its steps, or call any agent of the strategy."""

    @property
    def names(self) -> Sequence[str]: ...

    async def run(self, index: int, message: str) -> str: ...

    async def call_agent(self, name: str, message: str) -> str: ...


class FlowCode(Protocol):
    """A custom flow: decides which steps run with which message, and returns the final text."""

    def __call__(
        self, steps: FlowSteps, message: str, config: Mapping[str, Any]
    ) -> Awaitable[str]: ...


class CustomType(NamedTuple):
    code: Callable[..., Awaitable[str]]
    config: Shape | None


@dataclass
class Registry:
    """Everything registered for one run."""

    agents: dict[str, CustomType] = field(default_factory=dict)
    flows: dict[str, CustomType] = field(default_factory=dict)
    tools: dict[str, Tool] = field(default_factory=dict)
    built_in: Mapping[str, Tool] = field(default_factory=built_in_tools)
    hooks: Hooks = field(default_factory=Hooks)

    def agent(self, type_: str, code: AgentCode, config: Shape | None = None) -> None:
        """Make `type: <type_>` usable for agents; `config` checks their configuration."""
        self.agents[type_] = CustomType(code, config)

    def flow(self, type_: str, code: FlowCode, config: Shape | None = None) -> None:
        """Make `type: <type_>` usable for flows."""
        self.flows[type_] = CustomType(code, config)

    def tool(self, tool: Tool) -> None:
        """Offer a tool by its name, in front of a built-in of the same name."""
        self.tools[tool.name] = tool

    def find_tool(self, name: str) -> Tool | None:
        return self.tools.get(name) or self.built_in.get(name)

    def copy(self) -> "Registry":
        """The same registrations, open to additions for one run."""
        return Registry(
            dict(self.agents), dict(self.flows), dict(self.tools), self.built_in, self.hooks.copy()
        )

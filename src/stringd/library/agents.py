"""Agents of a strategy, as a program writes them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from stringd.library.functions import FunctionTool


class ModelObject(Protocol):
    """A model that is not named by a string. Both parts end up in the strategy."""

    @property
    def model(self) -> str: ...

    @property
    def provider_options(self) -> Mapping[str, Mapping[str, Any]]: ...


@dataclass(frozen=True)
class Agent:
    """An agent that a model answers for.

    `tools` are names of built-in tools or functions with `@tool`. `output` is a JSON Schema its
    answer must follow. `options` are those of the model (`temperature` and the like),
    `provider_options` are handed to its provider.
    """

    name: str
    model: "str | ModelObject | None" = None
    prompt: str | None = None
    tools: Sequence[str | FunctionTool[..., Any]] = ()
    description: str | None = None
    mcp_servers: Sequence[str] = ()
    skills: Sequence[str] = ()
    output: Mapping[str, Any] | None = None
    options: Mapping[str, float] = field(default_factory=dict)
    provider_options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    context: Mapping[str, Any] = field(default_factory=dict)
    max_steps: int | None = None

    @property
    def functions(self) -> "list[FunctionTool[..., Any]]":
        """The tools of it that are functions of this program."""
        return [each for each in self.tools if not isinstance(each, str)]

    def to_dict(self) -> dict[str, Any]:
        """What a strategy file says about this agent."""
        model, more = self.model, dict(self.provider_options)
        if model is not None and not isinstance(model, str):
            more |= model.provider_options
            model = model.model
        said: dict[str, Any] = {
            "description": self.description,
            "model": model,
            "systemPrompt": self.prompt,
            "tools": [each if isinstance(each, str) else each.name for each in self.tools],
            "mcpServers": list(self.mcp_servers),
            "skills": list(self.skills),
            "outputSchema": self.output,
            "modelOptions": dict(self.options),
            "providerOptions": more,
            "context": dict(self.context),
            "maxSteps": self.max_steps,
        }
        return {"type": "llm"} | {key: value for key, value in said.items() if value}


@dataclass(frozen=True)
class Person:
    """The person: asked for a text when nothing came in. `message` is said without asking."""

    name: str = "user"
    message: str | None = None
    description: str | None = None

    @property
    def functions(self) -> "list[FunctionTool[..., Any]]":
        return []

    def to_dict(self) -> dict[str, Any]:
        """What a strategy file says about this agent."""
        said: dict[str, Any] = {"type": "user"}
        if self.description:
            said["description"] = self.description
        if self.message is not None:
            said["config"] = {"requireInput": False, "presetMessage": self.message}
        return said

"""For tests of agents and flows: models that say what a test tells them to.

from stringd import Agent, run
from stringd.testing import Reply, ScriptedModel, CallTool

model = ScriptedModel(Reply(tools=[CallTool("word_count", text="a b c")]), "three words")
assert run(Agent("writer", model=model, tools=[word_count]), "count").text == "three words"
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from stringd.library.agents import Agent, Person
from stringd.library.flows import Broadcast, Cycle, Flow, Sequential, Step, as_flow

__all__ = ["CallTool", "Reply", "ScriptedModel", "with_models"]


class CallTool:
    """A call of a tool that a scripted model makes."""

    def __init__(self, name: str, /, **args: Any) -> None:
        self.name = name
        self.args = args

    def to_dict(self) -> dict[str, Any]:
        return {"name": self.name, "args": self.args}


@dataclass(frozen=True)
class Reply:
    """One answer of a scripted model. `{message}` in a text is what the model was asked last."""

    text: str = ""
    tools: Sequence[CallTool] = ()
    thinking: str = ""
    chunks: Sequence[str] = ()
    error: str | None = None
    delay: float = 0.0
    """Seconds before each piece."""
    usage: Mapping[str, int] = field(default_factory=dict)
    """`promptTokens` and `completionTokens`; counted from the words unless given."""

    def to_dict(self) -> dict[str, Any]:
        said: dict[str, Any] = {
            "text": self.text,
            "tools": [each.to_dict() for each in self.tools],
            "thinking": self.thinking,
            "chunks": list(self.chunks),
            "error": self.error,
            "delayMs": self.delay * 1000,
            "usage": dict(self.usage),
        }
        return {key: value for key, value in said.items() if value} or {"text": ""}


class ScriptedModel:
    """Answers in order what it was given; past the end it repeats the last. Needs no network."""

    def __init__(self, *replies: str | Reply) -> None:
        if not replies:
            raise ValueError("a ScriptedModel needs at least one reply")
        self.replies = replies

    @property
    def model(self) -> str:
        return "demo/script"

    @property
    def provider_options(self) -> Mapping[str, Mapping[str, Any]]:
        script = [each if isinstance(each, str) else each.to_dict() for each in self.replies]
        return {"demo": {"script": script}}


def with_models(strategy: Flow | Agent | Person, models: Mapping[str, str | ScriptedModel]) -> Flow:
    """The same flow with other models for the agents that are named. Raises `ValueError`."""
    flow = as_flow(strategy)
    unknown = sorted(set(models) - set(flow.agents))
    if unknown:
        raise ValueError(f"no agent is called {', '.join(unknown)}")
    return _flow(flow, models)


def _flow(flow: Flow, models: Mapping[str, str | ScriptedModel]) -> Flow:
    steps = [_step(each, models) for each in flow.steps]
    copy: Flow
    match flow:
        case Cycle():
            watching = None if flow.observer is None else _agent(flow.observer, models)
            copy = Cycle(
                *steps,
                rounds=flow.rounds,
                until=flow.until,
                observer=watching,
                match=flow.match,
                name=flow.name,
                description=flow.description,
            )
        case Broadcast():
            copy = Broadcast(
                *steps, separator=flow.separator, name=flow.name, description=flow.description
            )
        case _:
            copy = Sequential(*steps, name=flow.name, description=flow.description)
    copy.settings = dict(flow.settings)
    return copy


def _step(step: Step, models: Mapping[str, str | ScriptedModel]) -> Step:
    return _flow(step, models) if isinstance(step, Flow) else _agent(step, models)


def _agent(agent: Agent | Person, models: Mapping[str, str | ScriptedModel]) -> Agent | Person:
    if isinstance(agent, Person) or agent.name not in models:
        return agent
    return replace(agent, model=models[agent.name])

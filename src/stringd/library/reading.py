"""A strategy file, or what one says, as objects again."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stringd.library.agents import Agent, Person
from stringd.library.flows import Broadcast, Cycle, Flow, Sequential, Step
from stringd.runs import StrategyFileError, check_source


def read_strategy(source: str | Path | Mapping[str, Any]) -> Flow:
    """The flow of a strategy: its file, or what a file would say.

    Raises `ValueError` for one that is not valid, or that only a file can express: templates, and
    types that code registers.
    """
    try:
        value = check_source(source if isinstance(source, Mapping) else Path(source))
    except StrategyFileError as error:
        raise ValueError(str(error)) from None
    folder = None if isinstance(source, Mapping) else Path(source).parent
    agents = {name: _agent(name, raw, folder) for name, raw in value["agents"].items()}
    flow = _flow(value["flow"], agents)
    flow.description = value.get("description")
    around = ("name", "version", "mcpServers", "sandbox")
    flow.settings = {key: value[key] for key in around if key in value}
    return flow


def _agent(name: str, raw: Mapping[str, Any], folder: Path | None) -> Agent | Person:
    match raw.get("type", "llm"):
        case "user":
            config = raw.get("config", {})
            return Person(name, config.get("presetMessage"), raw.get("description"))
        case "llm" if "systemPromptTemplate" not in raw:
            return Agent(
                name,
                model=raw.get("model"),
                prompt=_prompt(raw.get("systemPrompt"), folder),
                tools=tuple(raw.get("tools", ())),
                description=raw.get("description"),
                mcp_servers=tuple(raw.get("mcpServers", ())),
                skills=tuple(raw.get("skills", ())),
                output=raw.get("outputSchema"),
                options=raw.get("modelOptions", {}),
                provider_options=raw.get("providerOptions", {}),
                context=raw.get("context", {}),
                max_steps=raw.get("maxSteps"),
            )
        case kind:
            raise ValueError(f"agent {name!r} of type {kind!r} cannot be made an object")


def _prompt(said: str | None, folder: Path | None) -> str | None:
    if said is None or folder is None or not said.endswith((".md", ".txt")):
        return said
    try:
        return (folder / said).read_text("utf-8")
    except OSError as error:
        raise ValueError(f"cannot read the prompt {folder / said}: {error.strerror}") from None


def _flow(raw: Mapping[str, Any], agents: Mapping[str, Agent | Person]) -> Flow:
    steps = [_step(each, agents) for each in raw["steps"]]
    name, about = raw["name"], raw.get("description")
    match raw["type"]:
        case "sequential":
            return Sequential(*steps, name=name, description=about)
        case "broadcast":
            between = raw.get("separator", "\n\n")
            return Broadcast(*steps, separator=between, name=name, description=about)
        case "cycle":
            rounds = raw.get("cycles", 1)
            observer = raw.get("observer")
            return Cycle(
                *steps,
                rounds=None if rounds == "Infinity" else rounds,
                until=raw.get("breakCycleSignals") if observer is not None else None,
                observer=None if observer is None else agents[observer],
                match=raw.get("breakCycleSignalMatch", "substring"),
                name=name,
                description=about,
            )
        case kind:
            raise ValueError(f"flow {name!r} of type {kind!r} cannot be made an object")


def _step(raw: Mapping[str, Any], agents: Mapping[str, Agent | Person]) -> Step:
    return agents[raw["agent"]] if "agent" in raw else _flow(raw, agents)

"""A real model does the ten tasks, with `string` and with one tool for each action.

A task succeeds when the service behind the apps got the request that ends it.
"""

import asyncio
import json
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

from stringd.runs.errors import ModelError
from stringd.runs.models.demo import DemoProvider
from stringd.runs.models.directory import ProviderDirectory
from stringd.runs.models.port import (
    Finished,
    Model,
    ModelRequest,
    ModelSetup,
    TextDelta,
    ToolOffer,
    ToolRequested,
)

MAX_TURNS: Final = 12
SYSTEM: Final = "Do what the user asks with your tools. Today is 2026-11-18. Answer in a sentence."
Execute = Callable[[str, dict[str, Any]], str]
"""From a tool's name and arguments to what it answers."""


class FrozenTask(NamedTuple):
    text: str
    end: str
    """The request of the service that ends it, such as `POST /issues/398/close`."""


class Attempt(NamedTuple):
    success: bool
    turns: int
    tokens: int
    """Input and output of all turns, as the provider counts them."""


class Way(NamedTuple):
    """The tools a model is offered, and what carries them out."""

    name: str
    offers: Sequence[ToolOffer]
    execute: Execute
    requests: list[str]
    """What the service got; emptied before each task."""


def report(ways: Sequence[tuple[str, Sequence[Attempt]]], model: str) -> str:
    """Success, turns and tokens for each way; tokens of failures count too."""
    lines = [f"## Ten tasks by {model}", "", "| way | success | turns | tokens per success |"]
    lines.append("|---|--:|--:|--:|")
    for name, attempts in ways:
        successes = sum(each.success for each in attempts)
        turns = sum(each.turns for each in attempts) / max(1, len(attempts))
        tokens = sum(each.tokens for each in attempts)
        each = f"{tokens / successes:.0f}" if successes else "–"
        lines.append(f"| {name} | {successes} of {len(attempts)} | {turns:.1f} | {each} |")
    return "\n".join([*lines, ""])


def measure(name: str, ways: Sequence[Way], tasks: Sequence[FrozenTask], **options: Any) -> str:
    """The report for the model with this name, `provider/model`; or why there is none."""
    try:
        return asyncio.run(_measure(name, ways, tasks, options))
    except ModelError as error:
        return f"{name} could not be asked: {error}"


async def _measure(
    name: str, ways: Sequence[Way], tasks: Sequence[FrozenTask], options: dict[str, Any]
) -> str:
    with TemporaryDirectory() as folder:
        directory = ProviderDirectory(Path(folder))
        try:
            provider, _, ident = name.partition("/")
            setup = ModelSetup(ident, "bench", options, Path(folder))
            model: Model = (
                DemoProvider().model(setup)
                if provider == "demo"
                else directory.model(name, lambda _, found: replace(setup, model_id=found))
            )
            done = [(way.name, [await attempt(model, way, task) for task in tasks]) for way in ways]
        finally:
            await directory.close()
    return report(done, name)


async def attempt(model: Model, way: Way, task: FrozenTask) -> Attempt:
    """One task in a conversation of its own."""
    way.requests.clear()
    messages: list[dict[str, Any]] = [{"role": "user", "content": task.text}]
    tokens = 0
    for turn in range(MAX_TURNS):
        request = ModelRequest("bench", SYSTEM, list(messages), turn, way.offers)
        said, asked, spent = await _answer(model, request)
        tokens += spent
        if not asked:
            return Attempt(task.end in way.requests, turn + 1, tokens)
        messages.append({"role": "assistant", "content": [*said, *map(_call_part, asked)]})
        results = [await asyncio.to_thread(_result_part, way, each) for each in asked]
        messages.append({"role": "tool", "content": results})
    return Attempt(False, MAX_TURNS, tokens)


async def _answer(
    model: Model, request: ModelRequest
) -> tuple[list[dict[str, Any]], list[ToolRequested], int]:
    text, asked, tokens = "", list[ToolRequested](), 0
    async with aclosing(model.stream(request)) as events:
        async for event in events:
            match event:
                case TextDelta():
                    text += event.text
                case ToolRequested():
                    asked.append(event)
                case Finished():
                    tokens = (event.tokens.input or 0) + (event.tokens.output or 0)
    return [{"type": "text", "text": text}] if text else [], asked, tokens


def _call_part(asked: ToolRequested) -> dict[str, Any]:
    return {
        "type": "tool-call",
        "toolCallId": asked.id,
        "toolName": asked.name,
        "input": _arguments(asked) or {},
    }


def _result_part(way: Way, asked: ToolRequested) -> dict[str, Any]:
    arguments = _arguments(asked)
    known = asked.name in (offer.name for offer in way.offers)
    if arguments is None:
        text = "The arguments are not a JSON object."
    else:
        text = way.execute(asked.name, arguments) if known else f"Unknown tool: {asked.name}"
    return {
        "type": "tool-result",
        "toolCallId": asked.id,
        "toolName": asked.name,
        "output": {"type": "text", "value": text},
    }


def _arguments(asked: ToolRequested) -> dict[str, Any] | None:
    try:
        found = json.loads(asked.args or "{}")
    except ValueError:
        return None
    return found if isinstance(found, dict) else None

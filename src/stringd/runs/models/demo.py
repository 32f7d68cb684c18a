"""The built-in `demo` provider: deterministic, scripted, needs no network.

A script lists what each model round-trip of an agent answers, in order; past its end the last entry
repeats. It is under `providerOptions.demo.script`, or in a YAML or JSON file named there (a
list, or a map from agent name to list). Without a script, `demo/echo` repeats the message and any
other model answers with one friendly sentence about it.
"""

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from stringd.formats.shapes import (
    Anything,
    Either,
    Entries,
    Fields,
    Flag,
    Items,
    Number,
    Shape,
    TextShape,
    dotted,
)
from stringd.runs.errors import ModelError, StrategyFileError
from stringd.runs.models.port import (
    Finished,
    ModelEvent,
    ModelRequest,
    ModelSetup,
    Started,
    TextDelta,
    ThinkingDelta,
    ThinkingEnded,
    ThinkingStarted,
    Tokens,
    ToolRequested,
)
from stringd.runs.strategy.source import read_source

_text = TextShape()
_count = Number(whole=True, at_least=0)
_tool = Fields({"name": TextShape(filled=True)}, {"args": Entries(Anything())})
_reply = Fields(
    {},
    {
        "text": _text,
        "chunks": Items(_text),
        "thinking": _text,
        "tools": Items(_tool),
        "delayMs": Number(at_least=0),
        "error": _text,
        "empty": Flag(),
        "finishReason": _text,
        "usage": Fields({}, {"promptTokens": _count, "completionTokens": _count}),
    },
)
_script: Shape = Items(Either((_text, _reply)), filled=True)
_options = Fields(
    {},
    {
        "script": Either((_text, _script)),
        "delayMs": Number(at_least=0),
        "contextWindow": _count,
        "maxInputTokens": _count,
    },
)
_WORDS: Final = re.compile(r"\s*\S+\s*")


class DemoProvider:
    def model(self, setup: ModelSetup) -> "DemoModel":
        """A model for one agent. Raises `ModelError` when its script is wrong."""
        _refuse(_options, setup.options, "providerOptions.demo")
        return DemoModel(
            replies=_replies(setup),
            delay_ms=float(setup.options.get("delayMs", 0)),
            context_window=setup.options.get("contextWindow"),
            max_input_tokens=setup.options.get("maxInputTokens"),
        )


def _replies(setup: ModelSetup) -> Sequence[Mapping[str, Any]]:
    script = setup.options.get("script")
    if isinstance(script, str):
        script = _side_file(script, setup)
    if script is None:
        lead = "" if setup.model_id == "echo" else "Demo reply to: "
        return [{"text": lead + "{message}"}]
    return [{"text": entry} if isinstance(entry, str) else entry for entry in script]


def _side_file(name: str, setup: ModelSetup) -> Any:
    try:
        found = read_source(setup.base_dir / name, "Demo script").value
    except StrategyFileError as error:
        raise ModelError(str(error)) from None
    if isinstance(found, dict):
        if setup.agent_name not in found:
            raise ModelError(f'Demo script {name} has no entry for agent "{setup.agent_name}".')
        found = found[setup.agent_name]
    _refuse(_script, found, name)
    return found


def _refuse(shape: Shape, value: object, where: str) -> None:
    issues = [leaf for issue in shape.check(value) for leaf in (issue, *issue.leaves())]
    if issues:
        lines = "; ".join(f"{dotted(issue.path)}: {issue.problem}" for issue in issues)
        raise ModelError(f"Demo script is not valid ({where}): {lines}")


@dataclass(frozen=True)
class DemoModel:
    """Plays one script."""

    replies: Sequence[Mapping[str, Any]]
    delay_ms: float = 0
    context_window: int | None = None
    max_input_tokens: int | None = None

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        reply = self.replies[min(request.turn, len(self.replies) - 1)]
        chunks = _chunks(reply, request)
        thinking = reply.get("thinking", "")
        if "error" in reply and not chunks and not thinking:
            await self._pause(reply)
            raise ModelError(reply["error"])
        if reply.get("empty"):
            return
        yield Started()
        async for event in self._think(thinking, reply):
            yield event
        for chunk in chunks:
            await self._pause(reply)
            yield TextDelta(chunk)
        for number, tool in enumerate(reply.get("tools", ())):
            args = msgspec.json.encode(tool.get("args", {})).decode()
            yield ToolRequested(f"demo-{request.turn}-{number}", tool["name"], args)
        if "error" in reply:
            raise ModelError(reply["error"])
        yield Finished(_tokens(reply, request, chunks), _reason(reply))

    async def _think(self, text: str, reply: Mapping[str, Any]) -> AsyncIterator[ModelEvent]:
        if not text:
            return
        yield ThinkingStarted("thinking-1")
        for chunk in _WORDS.findall(text):
            await self._pause(reply)
            yield ThinkingDelta("thinking-1", chunk)
        yield ThinkingEnded("thinking-1")

    async def _pause(self, reply: Mapping[str, Any]) -> None:
        delay = reply.get("delayMs", self.delay_ms)
        if delay:
            await asyncio.sleep(delay / 1000)


def _chunks(reply: Mapping[str, Any], request: ModelRequest) -> list[str]:
    message = _last_user_text(request.messages)
    if "chunks" in reply:
        return [chunk.replace("{message}", message) for chunk in reply["chunks"]]
    text = str(reply.get("text", "")).replace("{message}", message)
    return _WORDS.findall(text) if text.strip() else [text] if text else []


def _reason(reply: Mapping[str, Any]) -> str:
    return str(reply.get("finishReason", "tool-calls" if reply.get("tools") else "stop"))


def _last_user_text(messages: Sequence[Mapping[str, Any]]) -> str:
    for message in reversed(messages):
        if message.get("role") == "user":
            return str(message.get("content", ""))
    return ""


def _tokens(reply: Mapping[str, Any], request: ModelRequest, chunks: list[str]) -> Tokens:
    """A word is a token here: enough for totals that add up and windows that fill."""
    given = reply.get("usage", {})
    asked = [request.system or "", *(str(m.get("content", "")) for m in request.messages)]
    answered = [*chunks, str(reply.get("thinking", ""))]
    return Tokens(
        input=int(given.get("promptTokens", sum(len(text.split()) for text in asked))),
        output=int(given.get("completionTokens", sum(len(text.split()) for text in answered))),
    )

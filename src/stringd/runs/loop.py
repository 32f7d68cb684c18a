"""The agent loop: ask the model, execute the tools it requests, feed back, until it is done."""

from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

import msgspec

from stringd.runs import memory as retention
from stringd.runs.agents import Answer, Call
from stringd.runs.models import port
from stringd.runs.models.registry import Models
from stringd.runs.prompt import system_prompt
from stringd.runs.registry import Registry
from stringd.runs.strategy.definition import LlmAgent
from stringd.runs.strategy.templates import Templates
from stringd.runs.tools.port import Tool, ToolContext
from stringd.wire.runs import stream
from stringd.wire.runs.types import ContextUsage, ConversationRecord, Usage


@dataclass
class RoundTrip:
    """What one answer of the model consisted of."""

    text: list[str] = field(default_factory=list)
    tools: list[port.ToolRequested] = field(default_factory=list)
    tokens: port.Tokens | None = None
    reason: str = "stop"
    began: bool = False

    def message(self) -> dict[str, Any]:
        """The assistant message this round-trip adds to the conversation."""
        text = "".join(self.text)
        if not self.tools:
            return {"role": "assistant", "content": text}
        calls = [
            {
                "type": "tool-call",
                "toolCallId": call.id,
                "toolName": call.name,
                "input": _arguments(call.args),
            }
            for call in self.tools
        ]
        return {
            "role": "assistant",
            "content": ([{"type": "text", "text": text}] if text else []) + calls,
        }


def _arguments(args: str) -> Any:
    try:
        return msgspec.json.decode(args)
    except (msgspec.DecodeError, RecursionError):
        return args


def _as_object(args: str) -> Mapping[str, Any] | None:
    found = _arguments(args or "{}")
    return found if isinstance(found, dict) else None


class LlmBody:
    """A model with a prompt, tools and a memory rule."""

    shows = True

    def __init__(
        self,
        definition: LlmAgent,
        model: str,
        models: Models,
        templates: Templates,
        registry: Registry,
        context: ToolContext,
    ) -> None:
        self.model: str | None = model
        self.context_window: int | None = None
        self._definition = definition
        self._name = model
        self._models = models
        self._templates = templates
        self._registry = registry
        self._context = context

    async def answer(self, call: Call) -> Answer:
        model = self._models.resolve(self._name, self._definition)
        self.context_window = model.context_window
        tools = [t for name in self._definition.tools if (t := self._registry.find_tool(name))]
        system = await system_prompt(self._definition, self._templates, tools)
        await self._retain(call, model)
        turns = _Turns(self, call, model, system, tools)
        return await turns.run(self._definition.max_steps)

    async def _retain(self, call: Call, model: port.Model) -> None:
        rule, memory = self._definition.retention, call.agent.memory
        why = retention.due(memory, rule, model, self._name)
        older = retention.older_than_recent(memory, rule.keep_recent) if why else []
        if why and older:
            summary = await self._summarise(call, model, older)
            event = retention.compaction(call.agent.name, memory, older, summary, why)
            memory.apply(event)
            await call.agent.observer.retention(event)
            await call.emit(stream.Retention(event=event))
        if rule.max_records is not None:
            memory.roll(rule.max_records)

    async def _summarise(
        self, call: Call, model: port.Model, records: Sequence[ConversationRecord]
    ) -> str:
        told = "\n\n".join(f"User: {r.user_message.get('content')}\nYou: {r.text}" for r in records)
        request = port.ModelRequest(
            agent_name=call.agent.name,
            system="Summarise this conversation so that you can go on from the summary alone.",
            messages=[{"role": "user", "content": told}],
            turn=call.agent.memory.turns(),
            options=self._definition.model_options,
            provider_options=self._definition.provider_options,
        )
        async with aclosing(model.stream(request)) as events:
            parts = [e.text async for e in events if isinstance(e, port.TextDelta)]
        return "".join(parts)

    def request(
        self,
        call: Call,
        system: str | None,
        messages: Sequence[Mapping[str, Any]],
        turn: int,
        tools: Sequence[Tool],
    ) -> port.ModelRequest:
        """One round-trip's request."""
        return port.ModelRequest(
            agent_name=call.agent.name,
            system=system,
            messages=messages,
            turn=turn,
            tools=[port.ToolOffer(t.name, t.description, t.parameters) for t in tools],
            options=self._definition.model_options,
            provider_options=self._definition.provider_options,
            output_schema=self._definition.output_schema,
        )

    @property
    def tool_context(self) -> ToolContext:
        return self._context


class _Turns:
    """The round-trips of one call."""

    def __init__(
        self,
        body: LlmBody,
        call: Call,
        model: port.Model,
        system: str | None,
        tools: Sequence[Tool],
    ) -> None:
        self._body = body
        self._call = call
        self._model = model
        self._system = system
        self._tools = {tool.name: tool for tool in tools}
        self._before = call.agent.memory.messages()
        self._turn = call.agent.memory.turns()
        self._asked = {"role": "user", "content": call.message}
        self._answered: list[dict[str, Any]] = []

    async def run(self, max_steps: int) -> Answer:
        usage, last = Usage(), RoundTrip()
        context: ContextUsage | None = None
        for _ in range(max_steps):
            last = await self._round_trip()
            if last.tokens is not None:
                usage += last.tokens.usage()
                context = last.tokens.context_usage()
            if last.began:
                self._answered.append(last.message())
            if not last.tools:
                break
            self._answered.append(await self._use_tools(last.tools))
        return Answer("".join(last.text), usage, context, last.reason, self._answered)

    async def _round_trip(self) -> RoundTrip:
        messages = [*self._before, self._asked, *self._answered]
        turn = self._turn + sum(message["role"] == "assistant" for message in self._answered)
        request = self._body.request(
            self._call, self._system, messages, turn, list(self._tools.values())
        )
        trip = RoundTrip()
        async with aclosing(self._model.stream(request)) as events:
            async for event in events:
                await self._take(event, trip)
        return trip

    async def _take(self, event: port.ModelEvent, trip: RoundTrip) -> None:
        if not trip.began:
            trip.began = True
            await self._call.emit(stream.StepStart())
        match event:
            case port.TextDelta(text):
                trip.text.append(text)
                await self._call.emit(stream.Text(text=text))
            case port.ThinkingStarted(id_):
                await self._call.emit(stream.ThinkingStart(id=id_))
            case port.ThinkingDelta(id_, text):
                await self._call.emit(stream.Thinking(id=id_, text=text))
            case port.ThinkingEnded(id_):
                await self._call.emit(stream.ThinkingEnd(id=id_))
            case port.ToolRequested():
                trip.tools.append(event)
            case port.Finished(tokens, reason):
                trip.tokens, trip.reason = tokens, reason

    async def _use_tools(self, requested: Sequence[port.ToolRequested]) -> dict[str, Any]:
        results = [await self._use_tool(call) for call in requested]
        content = [
            {
                "type": "tool-result",
                "toolCallId": result.tool_call_id,
                "toolName": result.tool_name,
                "output": {"type": "text", "value": result.error or result.output},
            }
            for result in results
        ]
        return {"role": "tool", "content": content}

    async def _use_tool(self, asked: port.ToolRequested) -> stream.ToolResult:
        hooks, info = self._call.agent.hooks, self._call.info
        await self._call.emit(
            stream.ToolCall(tool_call_id=asked.id, tool_name=asked.name, args=asked.args)
        )
        for hook in hooks.before_tool_call:
            await hook(info, asked.name, asked.args)
        result = await self._execute(asked)
        for hook in hooks.after_tool_call:
            await hook(info, asked.name, result.output)
        await self._call.emit(result)
        return result

    async def _execute(self, asked: port.ToolRequested) -> stream.ToolResult:
        tool, args = self._tools.get(asked.name), _as_object(asked.args)
        if tool is None:
            return _not_executed(asked, f'Tool "{asked.name}" is not available to this agent')
        if args is None:
            return _not_executed(asked, f'Arguments for "{asked.name}" are not a JSON object')
        try:
            output = (await tool.call(args, self._body.tool_context)).output
        except Exception as error:  # noqa: BLE001  # the model is told, whatever a tool throws
            output = f"Tool `{asked.name}` threw: {error}"
        return stream.ToolResult(
            tool_call_id=asked.id, tool_name=asked.name, output=output, status="completed"
        )


def _not_executed(asked: port.ToolRequested, why: str) -> stream.ToolResult:
    return stream.ToolResult(
        tool_call_id=asked.id, tool_name=asked.name, output="", status="error", error=why
    )

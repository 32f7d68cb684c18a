"""The agent loop: ask the model, execute the tools it requests, feed back, until it is done."""

from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

import msgspec
from msgspec import UNSET

from stringd.runs.agents import memory as retention
from stringd.runs.agents.agent import AgentAnswer, AgentTurn
from stringd.runs.agents.extensions import Registry
from stringd.runs.agents.steering import with_steering
from stringd.runs.agents.system_prompt import system_prompt
from stringd.runs.agents.templates import Templates
from stringd.runs.agents.tool_calls import ToolUse, decoded
from stringd.runs.mcp.servers import RunServers
from stringd.runs.models import port
from stringd.runs.models.resolve import Models
from stringd.runs.record.events import ModelTurn
from stringd.runs.record.recorder import Recorder
from stringd.runs.record.resume import Journal
from stringd.runs.strategy.definition import LlmAgent
from stringd.runs.strategy.skills import prompt_section
from stringd.runs.tools.context import ToolContext
from stringd.runs.tools.tool import Tool
from stringd.system.clock import timestamp
from stringd.wire.runs import stream
from stringd.wire.runs.types import ContextUsage, ConversationRecord, Usage


@dataclass
class RoundTrip:
    """What one answer of the model consisted of."""

    text: list[str] = field(default_factory=list)
    thinking: dict[str, dict[str, Any]] = field(default_factory=dict)
    tools: list[port.ToolRequested] = field(default_factory=list)
    tokens: port.Tokens | None = None
    reason: str = "stop"
    began: bool = False
    shown: bool = False

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
                "input": decoded(call.args),
            }
            for call in self.tools
        ]
        return {
            "role": "assistant",
            "content": [*self.thinking.values(), *([_text_part(text)] if text else []), *calls],
        }


def _text_part(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _recorded_trip(turn: ModelTurn) -> RoundTrip:
    """A round-trip an interrupted call had made, as far as its tools go."""
    parts = turn.answer.get("content")
    calls = [part for part in parts if part.get("type") == "tool-call"] if parts else []
    tools = [
        port.ToolRequested(part["toolCallId"], part["toolName"], _text_of(part["input"]))
        for part in calls
    ]
    return RoundTrip(tools=tools, reason=turn.finish_reason, began=True)


def _steer(results: dict[str, Any], texts: list[str]) -> None:
    """Put texts behind the last result: a record has no room for a user's word in between."""
    if texts:
        output = results["content"][-1]["output"]
        output["value"] = with_steering(output["value"], texts)


def _text_of(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


@dataclass(frozen=True)
class LlmParts:
    """What the agents of a segment share; `mcp` is None where no MCP server is connected.

    `parallel_tools` is how many tool calls of one answer may work at once.
    """

    models: Models
    templates: Templates
    registry: Registry
    mcp: RunServers | None
    recorder: Recorder
    journal: Journal
    parallel_tools: int = 8


class LlmBody:
    """A model with a prompt, tools and a memory rule."""

    shows = True

    def __init__(
        self, definition: LlmAgent, model: str, context: ToolContext, parts: LlmParts
    ) -> None:
        self.model: str | None = model
        self.context_window: int | None = None
        self.context = context
        self.parts = parts
        self._definition = definition
        self._name = model
        self._kept: dict[str, Any] = {}

    async def answer(self, call: AgentTurn) -> AgentAnswer:
        model = self.parts.models.resolve(self._name, self._definition)
        self.context_window = model.context_window
        tools = self._tools()
        skills = prompt_section(self.context.desk.skills, self._definition.skills)
        system = await system_prompt(self._definition, self.parts.templates, tools, skills)
        await self._retain(call, model)
        turns = _Turns(self, call, model, system, tools)
        return await turns.run(self._definition.max_steps)

    def _tools(self) -> list[Tool]:
        own = [self.parts.registry.find_tool(name) for name in self._definition.tools]
        mcp = self.parts.mcp
        servers = self._definition.mcp_servers
        return [tool for tool in own if tool] + list(mcp.tools(servers) if mcp else ())

    async def _retain(self, call: AgentTurn, model: port.Model) -> None:
        rule, memory = self._definition.retention, call.agent.memory
        why = retention.due(memory, rule, model, self._name)
        older = retention.older_than_recent(memory, rule.keep_recent) if why else []
        summary = await self._summarise(call, model, older) if why and older else ""
        # Without a summary there is nothing to continue from; the whole conversation is better.
        if why and summary.strip():
            event = retention.compaction(call.agent.name, memory, older, summary, why)
            memory.apply(event)
            await call.agent.observer.retention(event)
            await call.emit(stream.Retention(event=event))
        if rule.max_records is not None:
            memory.roll(rule.max_records)

    async def _summarise(
        self, call: AgentTurn, model: port.Model, records: Sequence[ConversationRecord]
    ) -> str:
        told = "\n\n".join(f"User: {r.user_message.get('content')}\nYou: {r.text}" for r in records)
        request = port.ModelRequest(
            agent_name=call.agent.name,
            system="Summarise this conversation so that you can continue from the summary alone.",
            messages=[{"role": "user", "content": told}],
            turn=call.agent.memory.turns(),
            options=self._definition.model_options,
            provider_options=self._definition.provider_options,
        )
        trip = RoundTrip()
        async with aclosing(model.stream(request)) as events:
            async for event in events:
                if isinstance(event, port.TextDelta):
                    trip.text.append(event.text)
                elif isinstance(event, port.Finished):
                    trip.tokens = event.tokens
        self.spend(trip, model)
        return "".join(trip.text)

    def spend(self, trip: RoundTrip, model: port.Model) -> Usage:
        """Count a round-trip into the run's budget. Raises `BudgetError`."""
        spent = trip.tokens.usage() if trip.tokens else Usage()
        self.context.desk.budget.spend(spent, getattr(model, "price", None))
        return spent

    def request(
        self,
        call: AgentTurn,
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
            tools=[
                port.ToolOffer(t.name, t.description, t.parameters)
                for t in tools
                if getattr(t, "offered", True)
            ],
            options=self._definition.model_options,
            provider_options=self._definition.provider_options,
            output_schema=self._definition.output_schema,
            kept=self._kept,
        )


class _Turns:
    """The round-trips of one call."""

    def __init__(
        self,
        body: LlmBody,
        call: AgentTurn,
        model: port.Model,
        system: str | None,
        tools: Sequence[Tool],
    ) -> None:
        self._body = body
        self._call = call
        self._model = model
        self._system = system
        self._tools = tools
        self._journal = body.parts.journal
        self._use = ToolUse(
            call,
            body.context,
            tools,
            body.parts.recorder,
            self._journal,
            body.parts.parallel_tools,
        )
        self._done = self._journal.turns(call.path)
        if self._done:
            call.message = self._done[0].message
        self._before = call.agent.memory.messages()
        self._turn = call.agent.memory.turns()
        self._asked = {"role": "user", "content": call.message}
        self._answered: list[dict[str, Any]] = []

    async def run(self, max_steps: int) -> AgentAnswer:
        usage, last = Usage(), RoundTrip()
        context: ContextUsage | None = None
        for index in range(max_steps):
            if index < len(self._done):
                turn = self._done[index]
                usage += turn.usage
                context = turn.context_usage or None
                last = _recorded_trip(turn)
                self._answered.append(turn.answer)
            else:
                last = await self._round_trip()
                spent, context = self._spend(last, context)
                usage += spent
                if last.began:
                    self._answered.append(last.message())
                if last.tools:
                    self._note(index, last, spent, context)
            if not last.tools:
                break
            results = await self._use.use(last.tools, index)
            if index + 1 < max_steps:
                _steer(results, await self._steering(index))
            self._answered.append(results)
        return AgentAnswer("".join(last.text), usage, context, last.reason, self._answered)

    async def _steering(self, index: int) -> list[str]:
        """Texts for the model to read with the results of this round-trip's tools."""
        key = f"{self._call.path}#{index}"
        before = self._journal.steering_after(key)
        if index + 1 < len(self._done):
            return before
        agent = self._call.agent
        return [*before, *await agent.observer.steer_between(agent, key)]

    def _spend(
        self, trip: RoundTrip, context: ContextUsage | None
    ) -> tuple[Usage, ContextUsage | None]:
        if trip.tokens is None:
            return Usage(), context
        return self._body.spend(trip, self._model), trip.tokens.context_usage()

    def _note(
        self, index: int, trip: RoundTrip, spent: Usage, context: ContextUsage | None
    ) -> None:
        call = self._call
        self._body.parts.recorder.model_turn(
            ModelTurn(
                ts=timestamp(),
                path=call.path,
                index=index,
                message=call.message,
                answer=trip.message(),
                usage=spent,
                context_usage=context or UNSET,
                finish_reason=trip.reason,
            )
        )

    async def _round_trip(self) -> RoundTrip:
        messages = [*self._before, self._asked, *self._answered]
        turn = self._turn + sum(message["role"] == "assistant" for message in self._answered)
        request = self._body.request(self._call, self._system, messages, turn, self._tools)
        trip = RoundTrip()
        async with aclosing(self._model.stream(request)) as events:
            async for event in events:
                await self._take(event, trip)
        return trip

    async def _take(self, event: port.ModelEvent, trip: RoundTrip) -> None:
        note = event.why if isinstance(event, port.Delayed) else UNSET
        trip.began = trip.began or note is UNSET
        if not trip.shown:
            trip.shown = True
            await self._call.emit(stream.StepStart(note=note))
        match event:
            case port.TextDelta(text):
                trip.text.append(text)
                await self._call.emit(stream.Text(text=text))
            case port.ThinkingStarted(id_):
                trip.thinking[id_] = {"type": "reasoning", "text": ""}
                await self._call.emit(stream.ThinkingStart(id=id_))
            case port.ThinkingDelta(id_, text):
                trip.thinking[id_]["text"] += text
                await self._call.emit(stream.Thinking(id=id_, text=text))
            case port.ThinkingEnded(id_, signature, redacted):
                if signature:
                    trip.thinking[id_]["signature"] = signature
                if redacted:
                    trip.thinking[id_]["redacted"] = True
                await self._call.emit(stream.ThinkingEnd(id=id_))
            case port.ToolRequested():
                trip.tools.append(event)
            case port.Finished(tokens, reason):
                trip.tokens, trip.reason = tokens, reason

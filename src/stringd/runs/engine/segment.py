"""One execution of a run's flow: the stage flows act on and the observer agents report to."""

import asyncio
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Final
from uuid import uuid4

from msgspec import UNSET

from stringd.runs.agents.agent import Agent, Body, CustomBody, UserBody
from stringd.runs.agents.extensions import CustomType
from stringd.runs.agents.hooks import Hooks
from stringd.runs.agents.llm import LlmBody
from stringd.runs.agents.memory import Memory
from stringd.runs.agents.steering import Steer, with_steering
from stringd.runs.agents.templates import Templates
from stringd.runs.agents.tool_calls import as_object
from stringd.runs.engine.flows import run_entry
from stringd.runs.engine.human import verdicts
from stringd.runs.engine.run import Prepared, Run
from stringd.runs.guard.budget import RunBudget
from stringd.runs.guard.guards import RunGuards
from stringd.runs.guard.permissions import Permissions
from stringd.runs.guard.workspace import Workspace
from stringd.runs.models.resolve import Models
from stringd.runs.record import events
from stringd.runs.record.recorder import Ledger, open_call
from stringd.runs.record.resume import Journal
from stringd.runs.record.store import RunStore
from stringd.runs.strategy import definition as d
from stringd.runs.tools.context import Desk, ToolContext
from stringd.runs.tools.trash import Trash
from stringd.system.clock import timestamp
from stringd.wire.runs import messages
from stringd.wire.runs.stream import AgentStreamEvent, Text
from stringd.wire.runs.types import (
    AgentCallResult,
    ConversationRecord,
    RetentionEvent,
    Usage,
)

# A model that does wait should not also wait for its words to be sent.
_BREATH: Final = 8


class Segment:
    """Runs the prepared strategy of `run` once. `journal` holds what need not be done again."""

    def __init__(
        self,
        run: Run,
        prepared: Prepared,
        store: RunStore,
        models: Models,
        templates: Templates,
        *,
        concurrent_broadcast: bool = False,
        journal: Journal | None = None,
    ) -> None:
        self.usage = Usage()
        self.depth = 0
        self._texts = 0
        self.concurrent_broadcast = concurrent_broadcast
        self.run = run
        self.prepared = prepared
        self.store = store
        self.models = models
        self.templates = templates
        self._journal = journal or Journal()
        self._ledger = self.make_ledger()
        self.desk = self._make_desk()
        self._agents = {name: self._agent(each) for name, each in self._definitions().items()}

    def make_ledger(self) -> Ledger:
        return Ledger(self.store, self.run.id, self._journal.unfinished)

    def make_guards(self) -> RunGuards:
        return self.run.policies

    def _make_desk(self) -> Desk:
        """Grants, budget and to-dos begin and end with the segment."""
        prepared, equipment = self.prepared, self.prepared.equipment
        cwd = Path(prepared.settings.cwd)
        decide = verdicts(self.run, self.store)
        return Desk(
            permissions=Permissions(Workspace(cwd), self.make_guards(), decide),
            data_dir=equipment.data_dir,
            trash=Trash(equipment.data_dir / "trash", cwd),
            mutated=partial(self.store.append, self.run.id),
            budget=RunBudget(equipment.limits.tightened(prepared.limits)),
            skills=prepared.skills,
            mcp=prepared.mcp,
            ports=equipment.ports,
        )

    async def execute(self, message: str) -> str:
        """The entry flow's final text. Raises `ExecutionError`."""
        await self._remake_list()
        async with self.desk.budget.clock():
            return (await run_entry(self.prepared.strategy.flow, message, self)).text

    async def _remake_list(self) -> None:
        """Make the to-do list again that an interrupted segment had."""
        registry, cwd = self.prepared.registry, Path(self.prepared.settings.cwd)
        for call in self._ledger.list_changes():
            if call.tool_name not in registry.tools:
                context = self._tool_context(call.agent_name, cwd)
                args = as_object(call.args) or {}
                await registry.built_in[call.tool_name].call(args, context)

    def _tool_context(self, agent_name: str, cwd: Path) -> ToolContext:
        return ToolContext(
            self.run.id, agent_name, cwd, self._ask_question, self.desk, self._ledger
        )

    @property
    def hooks(self) -> Hooks:
        return self.prepared.registry.hooks

    def flow_code(self, type_: str) -> CustomType:
        return self.prepared.registry.flows[type_]

    async def call_agent(self, name: str, message: str, path: str) -> AgentCallResult:
        agent, done = self._agents[name], self._journal.call(name, path)
        result = await (agent.call(message, path) if done is None else agent.replayed(done))
        self.usage += result.usage
        return result

    async def completed_step(self, step: d.Step, path: str) -> AgentCallResult | None:
        done = self._journal.step(step.name, path)
        if done is not None:
            inside = f"{path}/"
            for call_path, record in self._journal.calls.items():
                if call_path == path or call_path.startswith(inside):
                    self.usage += record.usage
        return done

    async def step_started(self, step: d.Step, index: int, path: str, message: str) -> None:
        event = events.StepBegun(ts=timestamp(), step_name=step.name, index=index, path=path)
        event.flow_name = self.prepared.strategy.flow.name
        event.agent_name = step.agent if isinstance(step, d.AgentStep) else UNSET
        self.store.append(self.run.id, event)
        started = messages.StepStarted(run_id=self.run.id, step_name=step.name, message=message)
        self.run.observe(started)

    async def step_completed(
        self, step: d.Step, index: int, path: str, result: AgentCallResult
    ) -> None:
        event = events.StepEnded(ts=timestamp(), step_name=step.name, index=index, path=path)
        event.flow_name = self.prepared.strategy.flow.name
        event.agent_name = step.agent if isinstance(step, d.AgentStep) else UNSET
        event.result = result
        self.store.append(self.run.id, event)
        await self.store.sync(self.run.id)
        self.run.observe(
            messages.StepCompleted(run_id=self.run.id, step_name=step.name, result=result)
        )

    async def steer(self, agent: Agent, message: str, path: str) -> str:
        if self._ledger.turns(path):
            # The call was begun before; its message was sent to the model and cannot change.
            return message
        texts = self._deliver(agent, self.run.mailbox.drain())
        return with_steering(message, texts) if texts else message

    async def steer_between(self, agent: Agent, key: str) -> list[str]:
        return self._deliver(agent, self.run.mailbox.drain_between(), key)

    def _deliver(self, agent: Agent, steers: Sequence[Steer], key: str | None = None) -> list[str]:
        for steer in steers:
            event = events.SteerRecorded(ts=timestamp(), agent_name=agent.name, text=steer.text)
            event.key = key or UNSET
            self.store.append(self.run.id, event)
            if steer.receipt is not None:
                steer.receipt(agent.name)
        return [steer.text for steer in steers]

    async def stream(self, agent: Agent, event: AgentStreamEvent) -> None:
        if not agent.body.shows:
            return
        message = messages.AgentStreaming(run_id=self.run.id, agent_name=agent.name, event=event)
        self._describe(agent, message)
        self.run.observe(message)
        if isinstance(event, Text):
            self._texts += 1
            if self._texts % _BREATH == 0:
                # A model that never waits must still let subscribers and stops through.
                await asyncio.sleep(0)

    async def output(self, agent: Agent, result: AgentCallResult) -> None:
        if not agent.body.shows:
            return
        message = messages.AgentOutput(
            run_id=self.run.id,
            agent_name=agent.name,
            text=result.text,
            usage=result.usage,
            context_usage=result.context_usage,
        )
        self._describe(agent, message)
        self.run.observe(message)

    async def record(self, record: ConversationRecord, path: str) -> None:
        event = events.AgentCall(ts=record.created_at, record=record, path=path)
        self.store.append(self.run.id, event)

    async def retention(self, event: RetentionEvent) -> None:
        kept = events.ConversationRetention(ts=event.created_at, event=event)
        self.store.append(self.run.id, kept)

    def _describe(
        self, agent: Agent, message: messages.AgentStreaming | messages.AgentOutput
    ) -> None:
        body = agent.body
        message.model = UNSET if body.model is None else body.model
        message.context_window = UNSET if body.context_window is None else body.context_window

    def _definitions(self) -> dict[str, d.AgentDefinition]:
        return dict(self.prepared.strategy.agents)

    def _agent(self, definition: d.AgentDefinition) -> Agent:
        records = [
            record
            for record in self.prepared.conversation.records
            if record.agent_name == definition.name
        ]
        return Agent(definition.name, self._body(definition), Memory(records), self.hooks, self)

    def _body(self, definition: d.AgentDefinition) -> Body:
        match definition:
            case d.UserAgent():
                preset = definition.preset_message
                return UserBody(definition.require_input, preset, self._ask_input)
            case d.CustomAgent():
                code = self.prepared.registry.agents[definition.type].code
                return CustomBody(code, definition.config or {})
            case d.LlmAgent():
                settings = self.prepared.settings
                model = settings.model_override or definition.model or ""
                context = self._tool_context(definition.name, Path(settings.cwd))
                return LlmBody(
                    definition,
                    model,
                    self.models,
                    self.templates,
                    self.prepared.registry,
                    context,
                )

    async def _ask_input(self, agent_name: str, path: str) -> str:
        async def send(_request_id: str) -> str:
            prompt = messages.RequestInput(run_id=self.run.id, agent_name=agent_name, prompt="")
            prompt.request_id = self.run.request_id
            return await self.run.ask(prompt)

        return await self._ledger.ask(f"{path}?1", "input", agent_name, "", send)

    async def _ask_question(self, agent_name: str, question: str) -> str:
        async def send(request_id: str) -> str:
            prompt = messages.RequestQuestion(
                run_id=self.run.id,
                request_id=request_id,
                agent_name=agent_name,
                question=question,
            )
            return await self.run.ask(prompt)

        call = open_call.get()
        if call is None:
            return await send(str(uuid4()))
        return await self._ledger.ask(call.prompt_key(), "question", agent_name, question, send)

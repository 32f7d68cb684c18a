"""One execution of a run's flow: the stage flows act on and the observer agents report to."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Final

from msgspec import UNSET

from stringd.runs.agents.acp import AcpBody
from stringd.runs.agents.agent import Body, CustomBody, RunAgent, UserBody
from stringd.runs.agents.extensions import CustomType
from stringd.runs.agents.hooks import Hooks
from stringd.runs.agents.llm import LlmBody, LlmParts
from stringd.runs.agents.memory import Memory
from stringd.runs.agents.steering import Mailbox, Steer, with_steering
from stringd.runs.agents.tool_calls import as_object
from stringd.runs.engine.flows import run_entry
from stringd.runs.engine.human import Human
from stringd.runs.engine.run import Prepared, Run
from stringd.runs.engine.services import RunServices
from stringd.runs.guard.budget import RunBudget
from stringd.runs.guard.guards import RunGuards
from stringd.runs.guard.permissions import Permissions
from stringd.runs.guard.workspace import Workspace
from stringd.runs.record.recorder import Recorder, StepPlace
from stringd.runs.record.resume import Journal
from stringd.runs.strategy import definition as d
from stringd.runs.strategy.discover import discover
from stringd.runs.tools.context import Desk, Launch, ToolContext
from stringd.runs.tools.sandbox import RunSandbox, narrowest
from stringd.runs.tools.trash import Trash
from stringd.system.sandbox import Level
from stringd.wire.runs import messages
from stringd.wire.runs.approvals import StepApproval
from stringd.wire.runs.stream import AgentStreamEvent, Text
from stringd.wire.runs.types import (
    AgentCallResult,
    ConversationRecord,
    RetentionEvent,
    Usage,
)

# A model that does wait should not also wait for its words to be sent.
_BREATH: Final = 32


@dataclass(frozen=True)
class SegmentParts:
    """What a segment works with.

    A flow inside a tool call of another (`depth` above 0) shows its agents to the same audience,
    but records nothing, shows no steps and takes no steering. `first_input` answers its first
    request for input. Its commands reach no further than `widest`. `journal` holds what need not
    be done again.
    """

    recorder: Recorder
    mailbox: Mailbox
    guards: RunGuards
    budget: RunBudget
    journal: Journal = field(default_factory=Journal)
    depth: int = 0
    widest: Level = Level.OPEN
    first_input: str = ""


class Segment:
    """Runs the prepared strategy of `run` once. `launcher` makes what `launch_strategy` does."""

    def __init__(
        self,
        services: RunServices,
        run: Run,
        prepared: Prepared,
        parts: SegmentParts,
        launcher: "Callable[[Segment], Launch]",
    ) -> None:
        self.usage = Usage()
        self.services = services
        self.run = run
        self.prepared = prepared
        self.depth = parts.depth
        self._texts = 0
        self.recorder = parts.recorder
        self._mailbox = parts.mailbox
        self._journal = parts.journal
        self._human = Human(
            run,
            parts.recorder,
            parts.journal,
            services.config.prompt_seconds,
            parts.first_input,
        )
        self._parts = parts
        self._launcher = launcher
        self._agents = {name: self._agent(each) for name, each in prepared.strategy.agents.items()}

    @cached_property
    def desk(self) -> Desk:
        """What tools work with, made for the first agent that has some.

        Grants and to-dos begin and end with the segment.
        """
        prepared, config, parts = self.prepared, self.services.config, self._parts
        return Desk(
            permissions=Permissions(Workspace(self._cwd), parts.guards, self._human.verdicts()),
            discover=lambda: discover(self._cwd, config.data_dir, config.files()),
            trash=Trash(config.data_dir / "trash", self._cwd),
            mutated=parts.recorder.file_changed,
            budget=parts.budget,
            sandbox=self._make_sandbox(parts.widest),
            skills=prepared.skills,
            ports=config.ports,
            launch=self._launcher(self),
        )

    def _make_sandbox(self, widest: Level) -> RunSandbox:
        config = self.services.config
        level = narrowest(config.sandbox, self.prepared.strategy.sandbox, widest)
        return RunSandbox(level, self._cwd, config.guard_defaults(self._cwd).forbidden_places)

    @cached_property
    def _cwd(self) -> Path:
        return Path(self.prepared.settings.cwd)

    async def execute(self, message: str) -> str:
        """The entry flow's final text. Raises `ExecutionError`."""
        await self._rebuild()
        try:
            async with self._parts.budget.clock():
                return (await run_entry(self.prepared.strategy.flow, message, self)).text
        finally:
            for agent in self._agents.values():
                if isinstance(agent.body, AcpBody):
                    await agent.body.close()
            if "desk" in self.__dict__ and self.desk.sandbox.used:
                await asyncio.to_thread(self.desk.sandbox.close)

    async def _rebuild(self) -> None:
        """Make again what an interrupted segment had in memory: its to-do list."""
        registry = self.prepared.registry
        for call in self._journal.calls_to_rebuild():
            if call.tool_name not in registry.tools:
                context = self._tool_context(call.agent_name)
                args = as_object(call.args) or {}
                await registry.built_in[call.tool_name].call(args, context)

    def _tool_context(self, agent_name: str) -> ToolContext:
        return ToolContext(self.run.id, agent_name, self._cwd, self._human.question, self.desk)

    @property
    def hooks(self) -> Hooks:
        return self.prepared.registry.hooks

    @property
    def concurrent_broadcast(self) -> bool:
        return self.services.config.concurrent_broadcast

    def flow_code(self, type_: str) -> CustomType:
        return self.prepared.registry.flows[type_]

    async def call_agent(self, name: str, message: str, path: str) -> AgentCallResult:
        agent, done = self._agents[name], self._journal.call(name, path)
        result = await (agent.call(message, path) if done is None else agent.replayed(done))
        self.usage += result.usage
        return result

    async def approval(self, name: str, text: str, message: str, path: str) -> StepApproval:
        return await self._human.approval(name, text, message, path)

    async def completed_step(self, step: d.Step, path: str) -> AgentCallResult | None:
        done = self._journal.step(step.name, path)
        if done is not None:
            for record in self._journal.calls_within(path):
                self.usage += record.usage
        return done

    async def step_started(self, step: d.Step, index: int, path: str, message: str) -> None:
        self.recorder.step_started(self._place(step, index, path))
        if not self.depth:
            started = messages.StepStarted(run_id=self.run.id, step_name=step.name, message=message)
            self.run.observe(started)

    async def step_completed(
        self, step: d.Step, index: int, path: str, result: AgentCallResult
    ) -> None:
        self.recorder.step_ended(self._place(step, index, path), result)
        await self.recorder.sync()
        if not self.depth:
            ended = messages.StepCompleted(run_id=self.run.id, step_name=step.name, result=result)
            self.run.observe(ended)

    def _place(self, step: d.Step, index: int, path: str) -> StepPlace:
        agent = step.agent if isinstance(step, d.AgentStep) else None
        return StepPlace(step.name, self.prepared.strategy.flow.name, agent, index, path)

    async def steer(self, agent: RunAgent, message: str, path: str) -> str:
        if self._journal.turns(path):
            # The call was begun before; its message was sent to the model and cannot change.
            return message
        texts = self._deliver(agent, self._mailbox.drain())
        return with_steering(message, texts) if texts else message

    async def steer_between(self, agent: RunAgent, key: str) -> list[str]:
        return self._deliver(agent, self._mailbox.drain_between(), key)

    def _deliver(
        self, agent: RunAgent, steers: Sequence[Steer], key: str | None = None
    ) -> list[str]:
        for steer in steers:
            self.recorder.steering_delivered(agent.name, steer.text, key)
            if steer.receipt is not None:
                steer.receipt(agent.name)
        return [steer.text for steer in steers]

    async def stream(self, agent: RunAgent, event: AgentStreamEvent) -> None:
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

    async def output(self, agent: RunAgent, result: AgentCallResult) -> None:
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

    async def record(self, agent: RunAgent, record: ConversationRecord, path: str) -> None:
        self.recorder.agent_call(record, path, agent.body.model)

    async def retention(self, event: RetentionEvent) -> None:
        self.recorder.retention(event)

    def _describe(
        self, agent: RunAgent, message: messages.AgentStreaming | messages.AgentOutput
    ) -> None:
        body = agent.body
        message.model = UNSET if body.model is None else body.model
        message.context_window = UNSET if body.context_window is None else body.context_window

    def _agent(self, definition: d.AgentDefinition) -> RunAgent:
        records = [
            record
            for record in self.prepared.conversation.records
            if record.agent_name == definition.name
        ]
        return RunAgent(definition.name, self._body(definition), Memory(records), self.hooks, self)

    def _body(self, definition: d.AgentDefinition) -> Body:
        match definition:
            case d.UserAgent():
                preset = definition.preset_message
                return UserBody(definition.require_input, preset, self._human.input)
            case d.CustomAgent():
                code = self.prepared.registry.agents[definition.type].code
                return CustomBody(code, definition.config or {})
            case d.AcpAgent():
                return AcpBody(definition, self._tool_context(definition.name))
            case d.LlmAgent():
                model = self.prepared.settings.model_override or definition.model or ""
                context = self._tool_context(definition.name)
                return LlmBody(definition, model, context, self._llm_parts())

    def _llm_parts(self) -> LlmParts:
        return LlmParts(
            self.services.models,
            self.services.templates.within(self.desk.sandbox),
            self.prepared.registry,
            self.prepared.mcp,
            self.recorder,
            self._journal,
            self.services.config.parallel_tools,
        )

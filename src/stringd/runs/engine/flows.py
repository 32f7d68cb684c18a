"""Does an observer's verdict end its cycle?"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, Final, Protocol

from stringd.runs.agents.extensions import CustomType
from stringd.runs.agents.hooks import Hooks
from stringd.runs.errors import RejectedError, StepError
from stringd.runs.strategy import definition as d
from stringd.runs.strategy.definition import MatchMode
from stringd.wire.runs.approvals import StepApproval
from stringd.wire.runs.types import AgentCallResult, Usage


def breaks(verdict: str, signals: Iterable[str], mode: MatchMode) -> bool:
    """Whether the verdict carries one of the signals. Case never matters."""
    text = verdict.casefold()
    return any(_MODES[mode](text, signal.casefold()) for signal in signals)


def _substring(text: str, signal: str) -> bool:
    return signal in text


def _opens(line: str, signal: str) -> bool:
    line, signal = line.strip(), signal.strip()
    if not signal or not line.startswith(signal):
        return False
    return len(line) == len(signal) or line[len(signal)].isspace()


def _first_line(text: str, signal: str) -> bool:
    return any(_opens(line, signal) for line in _lines(text)[:1])


def _any_line(text: str, signal: str) -> bool:
    return any(_opens(line, signal) for line in _lines(text))


def _exact(text: str, signal: str) -> bool:
    return bool(signal.strip()) and text.strip() == signal.strip()


def _lines(text: str) -> list[str]:
    return [line for line in text.split("\n") if line.strip()]


_MODES: Final[dict[MatchMode, Callable[[str, str], bool]]] = {
    "substring": _substring,
    "first-line": _first_line,
    "any-line": _any_line,
    "exact": _exact,
}


class FlowStage(Protocol):
    """What flows run on: agents to call, and an audience for the entry flow's steps."""

    @property
    def hooks(self) -> Hooks: ...

    @property
    def concurrent_broadcast(self) -> bool: ...

    def flow_code(self, type_: str) -> CustomType: ...

    async def call_agent(self, name: str, message: str, path: str) -> AgentCallResult: ...

    async def approval(self, name: str, text: str, message: str, path: str) -> StepApproval: ...

    async def completed_step(self, step: d.Step, path: str) -> AgentCallResult | None: ...

    async def step_started(self, step: d.Step, index: int, path: str, message: str) -> None: ...

    async def step_completed(
        self, step: d.Step, index: int, path: str, result: AgentCallResult
    ) -> None: ...


async def run_entry(flow: d.FlowDefinition, message: str, stage: FlowStage) -> AgentCallResult:
    """Run the strategy's entry flow; its direct children are the run's steps."""
    return await FlowRunner(flow, stage, "", entry=True).run(message)


class FlowRunner:
    """One execution of one flow."""

    def __init__(
        self, flow: d.FlowDefinition, stage: FlowStage, prefix: str, *, entry: bool
    ) -> None:
        self.flow = flow
        self._stage = stage
        self._prefix = prefix
        self._entry = entry
        self._usage = Usage()

    async def run(self, message: str) -> AgentCallResult:
        match self.flow:
            case d.SequentialFlow():
                text = await self._in_order(message, "")
            case d.CycleFlow() as cycle:
                text = await self._cycle(cycle, message)
            case d.BroadcastFlow() as broadcast:
                text = await self._broadcast(broadcast, message)
            case d.CustomFlow() as custom:
                code = self._stage.flow_code(custom.type).code
                text = await code(_CustomSteps(self), message, custom.config or {})
        return AgentCallResult(text=text, usage=self._usage, finish_reason="stop")

    async def _in_order(self, message: str, mark: str) -> str:
        for index in range(len(self.flow.steps)):
            message = (await self.step(index, message, mark)).text
        return message

    async def _broadcast(self, flow: d.BroadcastFlow, message: str) -> str:
        indices = range(len(flow.steps))
        usual = self._stage.concurrent_broadcast
        if usual if flow.parallel is None else flow.parallel:
            results = await _all([self.step(index, message, "") for index in indices])
        else:
            results = [await self.step(index, message, "") for index in indices]
        return flow.separator.join(result.text for result in results)

    async def _cycle(self, flow: d.CycleFlow, current: str) -> str:
        hooks = self._stage.hooks
        for number in count(1) if flow.cycles is None else range(1, flow.cycles + 1):
            # Instant steps must not keep a stop from being heard.
            await asyncio.sleep(0)
            for hook in hooks.alter_message_before_cycle:
                current = await hook(flow.name, current)
            current = await self._in_order(current, f"c{number}.")
            agreed = True
            if flow.observer is not None:
                path = f"{self._prefix}c{number}.observer"
                verdict = await self._stage.call_agent(flow.observer, current, path)
                agreed = breaks(verdict.text, flow.signals, flow.match)
                if agreed and flow.approve is None:
                    return current
                if not agreed:
                    current = verdict.text
            if flow.approve is not None and agreed:
                path = f"{self._prefix}c{number}.approve"
                said = await self._stage.approval(flow.name, flow.approve, current, path)
                if said.verdict != "no":
                    return said.text if said.verdict == "edit" else current
                if number == flow.cycles:
                    raise RejectedError(flow.name, said.text)
                current = said.text
            for hook in hooks.alter_message_after_cycle:
                current = await hook(flow.name, current)
        return current

    async def step(self, index: int, message: str, mark: str) -> AgentCallResult:
        """Run one child. Raises `StepError`."""
        step, path = self.flow.steps[index], f"{self._prefix}{mark}{index}"
        done = await self._stage.completed_step(step, path) if self._entry else None
        if done is None:
            done = await self._run_step(step, index, path, message)
        self._usage += done.usage
        return done

    async def _run_step(self, step: d.Step, index: int, path: str, message: str) -> AgentCallResult:
        if self._entry:
            await self._stage.step_started(step, index, path, message)
        try:
            for hook in self._stage.hooks.before_step:
                await hook(step.name, message)
            result = await self._execute(step, path, message)
            for hook in self._stage.hooks.after_step:
                await hook(step.name, result.text)
        except asyncio.CancelledError:
            raise
        except Exception as error:  # step hooks and custom flows raise anything
            raise StepError(step.name, error) from error
        if self._entry:
            await self._stage.step_completed(step, index, path, result)
        return result

    async def _execute(self, step: d.Step, path: str, message: str) -> AgentCallResult:
        if isinstance(step, d.AgentStep):
            return await self._stage.call_agent(step.agent, message, path)
        if isinstance(step, d.ApproveStep):
            return await self._approved(step, path, message)
        return await FlowRunner(step, self._stage, f"{path}/", entry=False).run(message)

    async def _approved(self, step: d.ApproveStep, path: str, message: str) -> AgentCallResult:
        """The message, or what the human wants instead of it. Raises `RejectedError`."""
        said = await self._stage.approval(step.name, step.text, message, path)
        if said.verdict == "no":
            raise RejectedError(step.name, said.text)
        text = said.text if said.verdict == "edit" else message
        return AgentCallResult(text=text, usage=Usage(), finish_reason="stop")

    async def side_call(self, name: str, message: str, path: str) -> AgentCallResult:
        """Call an agent that is not a step of this flow."""
        return await self._stage.call_agent(name, message, f"{self._prefix}{path}")


async def _all(steps: Sequence[Coroutine[Any, Any, AgentCallResult]]) -> list[AgentCallResult]:
    """Run steps side by side; the first failure stops the others and is the one told."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(step) for step in steps]
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None
    return [task.result() for task in tasks]


@dataclass
class _CustomSteps:
    """The handle a custom flow works with. Repeated runs of a step get paths of their own."""

    runner: FlowRunner
    made: int = 0

    @property
    def names(self) -> Sequence[str]:
        return [step.name for step in self.runner.flow.steps]

    async def run(self, index: int, message: str) -> str:
        self.made += 1
        return (await self.runner.step(index, message, f"x{self.made}.")).text

    async def call_agent(self, name: str, message: str) -> str:
        self.made += 1
        return (await self.runner.side_call(name, message, f"x{self.made}.{name}")).text

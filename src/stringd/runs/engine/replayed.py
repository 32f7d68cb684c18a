"""The result of a run that is over, worked out from what its timeline kept. Nothing is called."""

from stringd.runs.agents.extensions import CustomType
from stringd.runs.agents.hooks import Hooks
from stringd.runs.engine.flows import run_entry
from stringd.runs.record.resume import Journal
from stringd.runs.strategy import definition as d
from stringd.wire.runs.approvals import StepApproval
from stringd.wire.runs.types import AgentCallResult


class _NotKeptError(Exception):
    """The timeline does not hold what the flow asks for."""


class _ReplayedStage:
    """Steps and calls give what they gave."""

    hooks = Hooks()
    concurrent_broadcast = False

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def flow_code(self, _type: str) -> CustomType:
        raise _NotKeptError

    async def call_agent(self, name: str, _message: str, path: str) -> AgentCallResult:
        record = self._journal.call(name, path)
        if record is None:
            raise _NotKeptError
        return AgentCallResult(
            text=record.text, usage=record.usage, finish_reason=record.finish_reason
        )

    async def approval(self, _name: str, _text: str, _message: str, path: str) -> StepApproval:
        said = self._journal.approval(path)
        if said is None:
            raise _NotKeptError
        return said

    async def completed_step(self, step: d.Step, path: str) -> AgentCallResult | None:
        return self._journal.step(step.name, path)

    async def step_started(self, _step: d.Step, _index: int, _path: str, _message: str) -> None:
        raise _NotKeptError

    async def step_completed(
        self, _step: d.Step, _index: int, _path: str, _result: AgentCallResult
    ) -> None:
        raise _NotKeptError


async def replayed_result(flow: d.FlowDefinition, journal: Journal) -> str | None:
    """What the flow gave in the end, or None where registered code had a part in it."""
    try:
        return (await run_entry(flow, journal.input, _ReplayedStage(journal))).text
    except _NotKeptError:
        return None

"""What an unfinished segment had already done, so that a resumed one does not do it again."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from stringd.runs.ledger import Unfinished
from stringd.runs.timeline import (
    AgentCall,
    AnyEvent,
    RunCompleted,
    RunStarted,
    SteerDelivered,
    StepCompleted,
    UserInput,
)
from stringd.wire.runs.types import AgentCallResult, ConversationRecord


@dataclass
class Journal:
    """Completed steps and calls by path, the input they started from, and texts still waiting."""

    input: str = ""
    steps: dict[str, tuple[str, AgentCallResult]] = field(default_factory=dict)
    calls: dict[str, ConversationRecord] = field(default_factory=dict)
    steering: list[str] = field(default_factory=list)
    finished: bool = False
    unfinished: Unfinished = field(default_factory=Unfinished)

    def step(self, name: str, path: str) -> AgentCallResult | None:
        """What the step gave when it completed; a file changed meanwhile may have another there."""
        done = self.steps.get(path)
        return done[1] if done is not None and done[0] == name else None

    def call(self, agent_name: str, path: str) -> ConversationRecord | None:
        """The agent's call at that place, if it was completed."""
        record = self.calls.get(path)
        return record if record is not None and record.agent_name == agent_name else None


def read_journal(events: Sequence[AnyEvent]) -> Journal:
    """The journal of the latest segment and of those it resumed."""
    journal = Journal()
    for event in events:
        match event:
            case RunStarted(resume=True):
                journal.finished = False
            case RunStarted(initial_input=text):
                journal = Journal(input=text or "")
            case _:
                _note(journal, event)
    return journal


def _note(journal: Journal, event: AnyEvent) -> None:
    journal.unfinished.note(event)
    match event:
        case StepCompleted(path=str(path), step_name=name, result=AgentCallResult() as result):
            journal.steps[path] = (name, result)
        case AgentCall(path=str(path), record=record):
            journal.calls[path] = record
        case UserInput(agent_name="", text=text):
            journal.steering.append(text)
        case SteerDelivered(text=text) if text in journal.steering:
            journal.steering.remove(text)
        case RunCompleted(status=status):
            journal.finished = status == "completed"
        case _:
            pass

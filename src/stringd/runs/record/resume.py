"""What an interrupted run need not do again, read from its timeline: the one reader of that."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import NamedTuple

from stringd.runs.record.events import (
    AgentCall,
    AnyEvent,
    HumanInput,
    ModelTurn,
    PromptAnswered,
    PromptAsked,
    RunCompleted,
    RunStarted,
    SteerRecorded,
    StepEnded,
    ToolFinished,
    ToolStarted,
    ToolWaiting,
)
from stringd.wire.runs.approvals import StepApproval, read_approval
from stringd.wire.runs.types import AgentCallResult, ConversationRecord, ErrorInfo


class EarlierPrompt(NamedTuple):
    """A prompt of an interrupted call. `answer` is None while nobody has given one."""

    asked: PromptAsked
    answer: str | None = None


def approval_key(path: str, number: int) -> str:
    """The key of what is asked at a step for approval; the next one when it was not understood."""
    return f"{path}?approve{number}"


def is_approval(key: str) -> bool:
    return "?approve" in key


def _is_no(prompt: EarlierPrompt) -> bool:
    said = read_approval(prompt.answer or "")
    return said is not None and said.verdict == "no"


@dataclass
class Unfinished:
    """Calls begun and not on record yet: answers, tools and prompts to the human, by key.

    `rebuilding` names the tools whose effect was in memory alone, so their calls are kept.
    """

    rebuilding: Collection[str] = ()
    turns: dict[str, list[ModelTurn]] = field(default_factory=dict)
    started: set[str] = field(default_factory=set)
    finished: dict[str, ToolFinished] = field(default_factory=dict)
    prompts: dict[str, EarlierPrompt] = field(default_factory=dict)
    steering: dict[str, list[str]] = field(default_factory=dict)
    rebuilt: dict[str, ToolStarted] = field(default_factory=dict)

    def note(self, event: AnyEvent) -> None:
        """Take in one event of the timeline, in order."""
        match event:
            case ModelTurn(path=path, index=index):
                known = self.turns.setdefault(path, [])
                known[index:] = [event]
            case ToolStarted(key=key):
                self.started.add(key)
                if event.tool_name in self.rebuilding:
                    self.rebuilt[key] = event
            case ToolWaiting(key=key, waiting=True):
                # Nothing happens before the answer, so it may simply be asked for again.
                self.started.discard(key)
            case ToolWaiting(key=key):
                self.started.add(key)
            case ToolFinished(key=key):
                self.finished[key] = event
                self._forget_prompts(key)
            case PromptAsked(key=key):
                self.prompts[key] = EarlierPrompt(event)
            case PromptAnswered(request_id=id_, answer=answer):
                for key, each in self.prompts.items():
                    if each.asked.request_id == id_:
                        self.prompts[key] = EarlierPrompt(each.asked, answer)
            case SteerRecorded(key=str(key), text=text):
                self.steering.setdefault(key, []).append(text)
            case RunCompleted() if not event.interrupted:
                error = event.error
                self._withdraw(rejected=isinstance(error, ErrorInfo) and error.code == "REJECTED")
            case AgentCall(path=str(path)):
                self.turns.pop(path, None)
                self._forget_prompts(path)
            case _:
                pass

    def _withdraw(self, *, rejected: bool) -> None:
        """Whoever stopped the run, or let it fail, withdrew what it asked.

        What was decided at a step stays decided; a no that ended the run is asked about again.
        """
        decided = {
            key: each
            for key, each in self.prompts.items()
            if is_approval(key) and each.answer is not None
        }
        noes = [key for key, each in decided.items() if _is_no(each)] if rejected else []
        self.prompts = {key: each for key, each in decided.items() if key not in noes[-1:]}

    def _forget_prompts(self, place: str) -> None:
        """What was asked there has had its effect."""
        for key in [key for key in self.prompts if key.startswith(f"{place}?")]:
            del self.prompts[key]


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

    def calls_within(self, path: str) -> list[ConversationRecord]:
        """The completed calls at a place and below it."""
        inside = f"{path}/"
        return [
            record
            for place, record in self.calls.items()
            if place == path or place.startswith(inside)
        ]

    def turns(self, path: str) -> list[ModelTurn]:
        """The answers an interrupted call at this path had got, oldest first."""
        return self.unfinished.turns.get(path, [])

    def steering_after(self, key: str) -> list[str]:
        """The texts an interrupted call had been steered with after the round-trip of that key."""
        return self.unfinished.steering.get(key, [])

    def tool_outcome(self, key: str) -> ToolFinished | None:
        """How a tool call of an interrupted segment ended, when it did."""
        return self.unfinished.finished.get(key)

    def tool_interrupted(self, key: str) -> bool:
        """Whether a tool call was begun and never ended."""
        return key in self.unfinished.started and key not in self.unfinished.finished

    def calls_to_rebuild(self) -> list[ToolStarted]:
        """The calls whose effect was in memory alone, in order: they are made again."""
        done = self.unfinished.finished
        return [call for key, call in self.unfinished.rebuilt.items() if key in done]

    def prompt(self, key: str, about: str) -> EarlierPrompt | None:
        """What an interrupted segment asked there, if it was about the very same thing."""
        before = self.unfinished.prompts.get(key)
        return before if before is not None and before.asked.about == about else None

    def approval(self, path: str) -> StepApproval | None:
        """What the human decided at this place, when they did."""
        for number in count(1):
            asked = self.unfinished.prompts.get(approval_key(path, number))
            if asked is None or asked.answer is None:
                return None
            said = read_approval(asked.answer)
            if said is not None:
                return said
        return None

    @property
    def unanswered(self) -> list[PromptAsked]:
        """Prompts nobody has answered yet, oldest first."""
        return [each.asked for each in self.unfinished.prompts.values() if each.answer is None]


def read_journal(events: Sequence[AnyEvent], rebuilding: Collection[str] = ()) -> Journal:
    """The journal of the latest segment and of those it resumed.

    `rebuilding` names the tools a resumed run calls again to have in memory what they made.
    """
    journal = Journal(unfinished=Unfinished(rebuilding))
    for event in events:
        match event:
            case RunStarted(resume=True):
                journal.finished = False
            case RunStarted(initial_input=text):
                journal = Journal(input=text or "", unfinished=Unfinished(rebuilding))
            case _:
                _note(journal, event)
    return journal


def _note(journal: Journal, event: AnyEvent) -> None:
    journal.unfinished.note(event)
    match event:
        case StepEnded(path=str(path), step_name=name, result=AgentCallResult() as result):
            journal.steps[path] = (name, result)
        case AgentCall(path=str(path), record=record):
            journal.calls[path] = record
        case HumanInput(agent_name="", text=text):
            journal.steering.append(text)
        case SteerRecorded(text=text) if text in journal.steering:
            journal.steering.remove(text)
        case RunCompleted(status=status):
            journal.finished = status == "completed"
        case _:
            pass

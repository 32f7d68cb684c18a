"""What happened in a run beside what was said: tools, permissions, answers and changed files."""

from collections.abc import Iterable

from msgspec import UNSET

from stringd.runs.record.events import (
    AnyEvent,
    HumanInput,
    PermissionDecided,
    PromptAnswered,
    PromptAsked,
    ToolFinished,
    ToolMutation,
    ToolStarted,
)
from stringd.wire.runs.catalog import RunActivity


def activity(events: Iterable[AnyEvent]) -> list[RunActivity]:
    """In the order it began."""
    found: list[RunActivity] = []
    calls: dict[str, RunActivity] = {}
    asked: dict[str, PromptAsked] = {}
    for event in events:
        match event:
            case ToolStarted():
                call = RunActivity(kind="tool", at=event.ts, agent_name=event.agent_name)
                call.tool_name, call.args = event.tool_name, event.args
                calls[event.key] = call
                found.append(call)
            case ToolFinished(key=key) if key in calls:
                call = calls[key]
                call.ended_at, call.status = event.ts, event.status
                call.output = event.error or event.output
            case PromptAsked(kind="question"):
                asked[event.request_id] = event
            case PromptAnswered(request_id=name) if name in asked:
                question = asked[name]
                _answer(
                    found,
                    RunActivity(
                        kind="answer",
                        at=event.ts,
                        agent_name=question.agent_name,
                        question=question.about,
                        text=event.answer,
                    ),
                )
            case HumanInput(agent_name=name):
                _answer(
                    found,
                    RunActivity(
                        kind="answer", at=event.ts, agent_name=name or UNSET, text=event.text
                    ),
                )
            case PermissionDecided():
                found.append(_permission(event))
            case ToolMutation():
                found.append(_change(event))
            case _:
                pass
    return found


def _answer(found: list[RunActivity], said: RunActivity) -> None:
    """A question's answer is recorded twice: for the agent, and for whoever asks again."""
    last = found[-1] if found else None
    if last is not None and (last.kind, last.agent_name, last.text) == (
        "answer",
        said.agent_name,
        said.text,
    ):
        last.question = last.question or said.question
    else:
        found.append(said)


def _permission(event: PermissionDecided) -> RunActivity:
    return RunActivity(
        kind="permission",
        at=event.ts,
        agent_name=event.agent_name,
        tool_name=event.tool_name,
        operation=event.operation,
        resource=event.resource,
        decision=event.decision,
        reason=event.reason,
    )


def _change(event: ToolMutation) -> RunActivity:
    return RunActivity(
        kind="change",
        at=event.ts,
        agent_name=event.agent_name,
        tool_name=event.tool_name,
        operation=event.operation,
        resource=event.path,
        status="completed" if event.success else "error",
        diff=event.diff,
    )

"""`stringd runs show`: what was said in a run and, on request, what was done."""

import argparse
from collections.abc import Iterable
from datetime import datetime

import msgspec

from stringd.cli.runs.answers import permission_question
from stringd.cli.runs.calls import Used
from stringd.cli.runs.common import fail
from stringd.cli.streams import visible
from stringd.client.runs import RunsClient
from stringd.wire.runs import messages as m
from stringd.wire.runs import requests as r
from stringd.wire.runs.catalog import RunActivity, WaitingPrompt
from stringd.wire.runs.types import ConversationRecord, ErrorInfo, RunOverview


def state_of(run: RunOverview) -> str:
    """A run's state in one word; the daemon's end is not a failure of the run."""
    return "interrupted" if run.interrupted is True else run.status


def overview_line(run: RunOverview, width: int) -> str:
    """One run in a list, with the way on where it was cut off."""
    when = run.started_at[:19].replace("T", " ")
    line = f"{run.run_id:<{width}}  {state_of(run):<9}  {when}  {run.strategy_name}"
    if run.interrupted is True:
        line += f"  resume with: stringd runs resume {run.run_id}"
    return f"{line}  (damaged: {run.damage})" if run.damage else line


def asked(waiting: WaitingPrompt) -> str:
    """What a run waits for, in one line."""
    match waiting.kind:
        case "input":
            return f"{waiting.agent_name} needs input"
        case "question":
            return f"{waiting.agent_name} asks: {waiting.question}"
        case "permission":
            return f"{waiting.agent_name} {permission_question(waiting)}"


async def show(port: int, args: argparse.Namespace) -> int:
    """Print one run. Raises `RunsError`."""
    async with RunsClient(port) as client:
        answer = await client.ask(r.GetTimeline(run_id=args.run_id, activity=args.tools))
    if not isinstance(answer, m.RunTimeline):
        return fail("the daemon does not know timelines")
    if args.json:
        print(msgspec.json.encode(answer).decode())
        return 0
    for line in _lines(answer, tools=args.tools):
        print(visible(line))
    return 0


def _lines(told: m.RunTimeline, *, tools: bool) -> Iterable[str]:
    yield overview_line(told.run, 0)
    records = told.conversation.records
    said = {each.before_record_id: each.text for each in told.conversation.inputs}
    done = list(told.activity or ())
    for record in records:
        if record.id in said:
            yield f"\nyou:\n  {_indented(said[record.id])}"
        while done and done[0].at <= record.created_at:
            yield _deed(done.pop(0))
        yield f"\n{record.agent_name}:{_cost(record) if tools else ''}\n  {_indented(record.text)}"
    yield from map(_deed, done)
    if isinstance(told.result, str) and records and told.result != records[-1].text:
        yield f"\nresult:\n  {_indented(told.result)}"
    for waiting in told.waiting:
        yield f"\n? {asked(waiting)}"
    if isinstance(told.error, ErrorInfo):
        yield f"\n{told.error.code}: {told.error.message}"


def _indented(text: str) -> str:
    return text.replace("\n", "\n  ")


def _cost(record: ConversationRecord) -> str:
    usage = record.usage
    when = record.created_at[11:19]
    return f"  ({usage.prompt_tokens} in, {usage.completion_tokens} out, {when})"


def _deed(done: RunActivity) -> str:
    who, when = done.agent_name or "you", done.at[11:19]
    match done.kind:
        case "tool":
            call = Used("", done.tool_name or "", done.args or "{}", done.output or "")
            ended = f"{call.size}, {_seconds(done)}" if done.ended_at else "not ended"
            failed = " failed" if done.status == "error" else ""
            return f"  {when} {who} used {call.name} {call.arguments} → {ended}{failed}"
        case "permission":
            why = f": {done.reason}" if done.reason else ""
            return f"  {when} {done.decision}: {done.operation} {done.resource} for {who}{why}"
        case "answer":
            return f"  {when} you to {who}: {_indented(done.text or '')}"
        case "change":
            diff = (
                f"\n    {(done.diff or '').rstrip()}".replace("\n", "\n    ") if done.diff else ""
            )
            return f"  {when} {who}: {done.operation} {done.resource}{diff}"


def _seconds(done: RunActivity) -> str:
    try:
        took = datetime.fromisoformat(done.ended_at or "") - datetime.fromisoformat(done.at)
    except ValueError:
        return "?"
    return f"{took.total_seconds():.1f} s"

"""`stringd runs answer` and `stringd runs decisions`: what waits, and what was decided."""

import argparse
import sys

import msgspec

from stringd.cli.runs.answers import PermissionAnswer, permission_request, read_permission
from stringd.cli.runs.common import fail
from stringd.cli.streams import visible
from stringd.client.daemon import UsageError
from stringd.client.runs import RunsClient
from stringd.wire.runs import messages as m
from stringd.wire.runs import requests as r
from stringd.wire.runs.catalog import WaitingPrompt


def add_commands(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",
) -> tuple[argparse.ArgumentParser, argparse.ArgumentParser]:
    """`answer` and `decisions`, without what all commands about a run share."""
    answer = commands.add_parser(
        "answer",
        help="answer what a run asks, without watching it",
        description="Answer the oldest question of a run, or with --all every permission that "
        "waits. A permission takes: yes, no [why], always, never (in this run), or edit: "
        "<command>. An input or a question takes any text; - reads it from standard input.",
    )
    answer.add_argument("--all", action="store_true", help="every permission that waits")
    answer.add_argument("--prompt", metavar="ID", help="this one, as `runs show --json` names it")
    decisions = commands.add_parser(
        "decisions", help="what was decided for the rest of a run, and take it back"
    )
    decisions.add_argument("--revoke", metavar="ID", help="take this decision back")
    return answer, decisions


async def answer(port: int, args: argparse.Namespace) -> int:
    """Answer what waits. Raises `RunsError` or `UsageError`."""
    text = sys.stdin.read().rstrip("\n") if args.text == ["-"] else " ".join(args.text)
    async with RunsClient(port, person=sys.stdin.isatty()) as client:
        told = await client.ask(r.GetTimeline(run_id=args.run_id))
        waiting = told.waiting if isinstance(told, m.RunTimeline) else []
        chosen = _chosen(args, waiting)
        for each in chosen:
            await client.tell(_request(args.run_id, each, text))
    ids = [each.request_id for each in chosen]
    if args.json:
        print(msgspec.json.encode({"answered": ids}).decode())
    else:
        print(visible(f"answered {len(ids)}: {text}"))
    return 0


def _chosen(args: argparse.Namespace, waiting: list[WaitingPrompt]) -> list[WaitingPrompt]:
    if args.prompt:
        found = [each for each in waiting if each.request_id == args.prompt]
    elif args.all:
        found = [each for each in waiting if each.kind == "permission"]
    else:
        found = waiting[:1]
    if not found:
        raise UsageError(f"run {args.run_id} asks nothing of that kind; see stringd runs")
    return found


def _request(run_id: str, prompt: WaitingPrompt, text: str) -> r.ClientMessage:
    if prompt.kind == "input":
        return r.UserInput(run_id=run_id, agent_name=prompt.agent_name, text=text)
    if prompt.kind == "question":
        return r.QuestionResponse(
            run_id=run_id, question_request_id=prompt.request_id, response=text
        )
    said = read_permission(text)
    if not isinstance(said, PermissionAnswer):
        raise UsageError(said)
    return permission_request(run_id, prompt.request_id, said)


async def decisions(port: int, args: argparse.Namespace) -> int:
    """List what counts in a live run, or take one of it back. Raises `RunsError`."""
    asked: r.ClientMessage = r.ListDecisions(run_id=args.run_id)
    if args.revoke:
        asked = r.RevokeDecision(run_id=args.run_id, decision_id=args.revoke)
    async with RunsClient(port, person=sys.stdin.isatty()) as client:
        answer = await client.ask(asked)
    if not isinstance(answer, m.DecisionList):
        return fail("the daemon gave another answer; is it an earlier version?")
    if args.json:
        print(msgspec.json.encode(answer.decisions).decode())
        return 0
    if not answer.decisions:
        print("nothing was decided for the rest of this run")
    for each in answer.decisions:
        verb = {"fs.read": "read", "fs.write": "change", "fs.exec": "run"}[each.operation]
        word = "always" if each.decision == "allow" else "never"
        line = f"{each.decision_id:>3}  {word}  {each.tool_name}: {verb} {each.resource}"
        print(visible(line))
    return 0

"""`stringd gate explain`, `grants` and `rules`: what decides at the gate without a key."""

import argparse
import json
import os
import sys
import time
import uuid
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from stringd.cli.request import RequestArguments, RequestUsageError, parse
from stringd.client.gate import (
    CONTROL_TIMEOUT,
    Gate,
    GateClientError,
    GateNotRunningError,
    build_request,
)
from stringd.gate.display import render
from stringd.wire.gate import Request, RequestAction, Response, ResponseError, Status

if TYPE_CHECKING:
    from stringd.gate.rule_places import RulesOnDisk

_EXPLAIN_HELP: Final = """\
usage: stringd gate explain [options] [--] COMMAND [ARG ...] ['|' COMMAND [ARG ...]] ...

Says what the gate would do if `stringd request` asked for the same with the same options: run it
without a question, ask, or deny it, and by which line of which file, or at which word a rule
failed. A gate that runs is asked; without one, the files decide as they are now. Runs nothing.

options: those of stringd request (--no-privilege, --env, --session, --forward-agent, --socket)
  --json   print the decision as an object
"""
_RULES_EPILOG: Final = "Without FILE, root's file and your own are checked. Exit code 1: a problem."


def main(name: str, argv: Sequence[str]) -> int:
    """Run one of the three."""
    return {"explain": explain, "grants": grants, "rules": rules}[name](argv)


def explain(argv: Sequence[str]) -> int:
    """Run `stringd gate explain`."""
    try:
        options = parse(argv)
    except RequestUsageError as error:
        print(f"error: {render(str(error))}", file=sys.stderr)
        return 1
    if options.help:
        print(_EXPLAIN_HELP, end="")
        return 0
    try:
        found, source = _explanation(options)
    except (GateClientError, ResponseError) as error:
        return _fail(str(error))
    if options.json:
        print(json.dumps(found | {"source": source}))
    else:
        print(f"{render(_sentence(found))}\n({render(source)})")
    return 0


def _explanation(options: RequestArguments) -> tuple[dict[str, object], str]:
    request = build_request(
        options.pipeline,
        session=options.session,
        env=options.env,
        privileged=not options.no_privilege,
        forward_agent=options.forward_agent,
        action=RequestAction.EXPLAIN,
    )
    gate = Gate(options.socket)
    try:
        response = gate.send(request, timeout=CONTROL_TIMEOUT)
    except GateNotRunningError:
        return _explained_by_files(request), "no gate runs; by the files as they are now"
    if response.status is not Status.OK or response.decision is None:
        raise GateClientError(response.message or "the gate cannot explain; it is an older one")
    return dict(response.decision), f"by the gate at {gate.path}"


def _explained_by_files(request: Request) -> dict[str, object]:
    from stringd.gate.callers import caller_of
    from stringd.gate.errors import RefusalError
    from stringd.gate.explain import decision_object, explained
    from stringd.gate.grants import GrantedCaller
    from stringd.gate.policy import StandingPolicy
    from stringd.gate.validate import ValidatedRequest

    rules = [rule for found in _standard_files() for rule in found.rules]
    caller = GrantedCaller(caller_of(os.getpid(), os.getuid()), "", "", request.session)
    try:
        checked = ValidatedRequest(request, fresh_id=str(uuid.uuid4()), now=time.time_ns())
        return decision_object(explained(checked, caller, StandingPolicy(rules)))
    except RefusalError as error:
        raise GateClientError(str(error)) from None


def _sentence(found: dict[str, object]) -> str:
    decision = str(found.get("decision"))
    return f"{_DECISIONS.get(decision, decision)}: {found.get('why', '')}"


_DECISIONS: Final = {
    "allow": "runs without a question",
    "ask": "you are asked",
    "deny": "denied without a question",
}


def grants(argv: Sequence[str]) -> int:
    """Run `stringd gate grants`."""
    parser = argparse.ArgumentParser(
        prog="stringd gate grants",
        description="Lists what you granted at the gate for a while (g twice), and ends it.",
    )
    parser.add_argument("what", nargs="*", metavar="list | revoke NUMBER | revoke all")
    parser.add_argument("--socket", help="the gate's socket, if not at its usual place")
    parser.add_argument("--json", action="store_true", help="for scripts")
    try:
        options = parser.parse_intermixed_args(argv)
    except SystemExit as done:
        return done.code if isinstance(done.code, int) else 1
    match options.what:
        case [] | ["list"]:
            request = build_request([], privileged=False, action=RequestAction.GRANTS)
        case ["revoke", number] if _is_number(number):
            request = build_request([], privileged=False, action=RequestAction.REVOKE)
            request = replace(request, grant=number)
        case _:
            return _fail("say stringd gate grants, or stringd gate grants revoke NUMBER (or all)")
    try:
        response = Gate(options.socket).send(request, timeout=CONTROL_TIMEOUT)
    except (GateClientError, ResponseError) as error:
        return _fail(str(error))
    return _report_grants(response, options.json)


def _is_number(text: str) -> bool:
    return text == "all" or (text.isascii() and text.isdigit())


def _report_grants(response: Response, as_json: bool) -> int:
    if response.status is not Status.OK:
        return _fail(response.message or "the gate refused")
    if as_json:
        found = {} if response.grants is None else {"grants": list(response.grants)}
        print(json.dumps({"message": response.message, **found}))
    else:
        for row in (response.message or "").split("\n"):
            print(render(row))
    return 0


def rules(argv: Sequence[str]) -> int:
    """Run `stringd gate rules check`."""
    parser = argparse.ArgumentParser(
        prog="stringd gate rules",
        description="Checks the gate's rules, and lists them.",
        epilog=_RULES_EPILOG,
    )
    parser.add_argument("what", nargs="*", metavar="check [FILE]")
    parser.add_argument("--root", action="store_true", help="check FILE as root's file")
    parser.add_argument("--json", action="store_true", help="for scripts")
    try:
        options = parser.parse_intermixed_args(argv)
    except SystemExit as done:
        return done.code if isinstance(done.code, int) else 1
    from stringd.gate.rule_places import read_rules

    match options.what:
        case [] | ["check"]:
            found = _standard_files()
        case ["check", file]:
            one = read_rules(Path(file).absolute(), for_root=options.root)
            if one is None:
                return _fail(f"there is no file {file}")
            found = [one]
        case _:
            return _fail("say stringd gate rules check, or stringd gate rules check FILE")
    if options.json:
        print(json.dumps({"files": [_file_object(each) for each in found]}))
    else:
        _print_files(found)
    return 1 if any(each.problems for each in found) else 0


def _standard_files() -> "list[RulesOnDisk]":
    from stringd.gate.rule_places import read_rules
    from stringd.gate.settings import from_environment

    settings = from_environment(os.environ)
    shared = read_rules(settings.root_rules, for_root=True)
    own = read_rules(settings.rules, for_root=False)
    return [each for each in (shared, own) if each is not None]


def _file_object(found: "RulesOnDisk") -> dict[str, object]:
    return {
        "file": str(found.path),
        "sha256": found.digest,
        "rules": [
            {"line": rule.line, "effect": str(rule.effect), "program": rule.program}
            for rule in found.rules
        ],
        "problems": [{"line": each.line, "why": each.why} for each in found.problems],
    }


def _print_files(files: "list[RulesOnDisk]") -> None:
    if not files:
        print("there are no rules: the gate asks about everything")
    for found in files:
        for problem in found.problem_lines():
            print(render(problem), file=sys.stderr)
        for rule in found.rules:
            absent = ""
            if rule.effect == "allow" and rule.identity is None:
                absent = "  (not installed: it never matches)"
            print(render(f"{found.path}:{rule.line}: {rule.effect} {rule.program}{absent}"))
        if not found.problems and not found.rules:
            print(render(f"{found.path}: no rules"))


def _fail(message: str) -> int:
    print(f"error: {render(message)}", file=sys.stderr)
    return 1

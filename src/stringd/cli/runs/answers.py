"""Permissions in words a person understands: the question, and how a typed answer is read."""

from typing import Any, Final, Literal, NamedTuple

from msgspec import UNSET

from stringd.cli.streams import unmistakable
from stringd.wire.runs import messages as m
from stringd.wire.runs import requests as r
from stringd.wire.runs.catalog import WaitingPrompt

Decision = Literal["allow", "deny", "allow-session", "deny-session"]

_WORDS: Final[dict[str, Decision]] = {
    "y": "allow",
    "yes": "allow",
    "n": "deny",
    "no": "deny",
    "a": "allow-session",
    "always": "allow-session",
    "never": "deny-session",
}
_DEEDS: Final = {"fs.read": "read", "fs.write": "change", "fs.exec": "run"}
_HOW: Final = "Answer yes, no and why, always or never (in this run)"
UNCLEAR: Final = f"That was not an answer. {_HOW}."


class PermissionAnswer(NamedTuple):
    """What a person typed: `every` is meant for all permissions that wait."""

    decision: Decision
    reason: str = ""
    command: str = ""
    every: bool = False


def read_permission(line: str) -> PermissionAnswer | str:
    """What a typed line decides, or what to say when that is not clear."""
    head, colon, command = line.strip().partition(":")
    if colon and head.strip().lower() == "edit" and command.strip():
        return PermissionAnswer("allow", command=command.strip())
    first, rest = [*line.split(None, 1), "", ""][:2]
    decision = _WORDS.get(first.lower().rstrip(",:;."))
    if decision is None:
        return UNCLEAR
    word, reason = [*rest.split(None, 1), "", ""][:2]
    every = word.lower().rstrip(",:;.") == "all"
    reason = (reason if every else rest).strip()
    if reason and decision in ("allow", "allow-session"):
        # "yes but …" is not a yes.
        return UNCLEAR
    return PermissionAnswer(decision, reason, every=every)


def permission_request(run_id: str, request_id: str, said: PermissionAnswer) -> r.ClientMessage:
    return r.PermissionDecision(
        run_id=run_id,
        permission_request_id=request_id,
        decision=said.decision,
        reason=said.reason or UNSET,
        command=said.command or UNSET,
    )


def permission_question(prompt: m.RequestPermission | WaitingPrompt) -> str:
    """Everything the answer depends on; what is not seen is spelled out, lest it forge a prompt."""
    details: dict[str, Any] = prompt.details if isinstance(prompt.details, dict) else {}
    resource, operation = str(prompt.resource), str(prompt.operation)
    parts = [f"wants to {_DEEDS.get(operation, operation)} {resource}"]
    command = details.get("command", resource)
    parts += [f"to run {command}"] if command != resource else []
    parts += [f"with {name}={value}" for name, value in (details.get("env") or {}).items()]
    if details.get("sandbox") == "none":
        parts.append("[this machine has no sandbox: see stringd doctor]")
    parts += [f"[{why}]" for why in details.get("why", ())]
    return unmistakable(" ".join(parts))


def permission_choices(prompt: m.RequestPermission) -> str:
    """The answers a permission takes."""
    details = prompt.details if isinstance(prompt.details, dict) else {}
    edit = ", edit: <command>" if details.get("editable") else ""
    return f"(yes, no <why>, always or never in this run{edit})"

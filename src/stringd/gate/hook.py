"""The permission hook of coding agents: what they say on the way in, what they read on the way out.

Claude Code and Codex run a command when they are about to ask for a permission, with the same JSON
on its standard input, and take a decision from its output. Without one they ask by themselves, so
whatever goes wrong here ends in no decision. Pure; `stringd gate hook` talks to the gate.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from stringd.gate.characters import cleaned
from stringd.gate.hook_text import OWN_PROMPTS, tool_text
from stringd.wire.gate import Response, Status

EVENT: Final = "PermissionRequest"
DENIED: Final = "The user denied this at stringd gate."
# What an agent may take in its name for a session.
_MAX_SESSION: Final = 100


class NotAQuestionError(Exception):
    """What came is not a permission request the gate could ask about; the text says why."""


@dataclass(frozen=True, slots=True)
class AgentQuestion:
    """What an agent is about to ask for."""

    tool: str
    text: str
    session: str
    directory: str
    mode: str


def read_question(data: bytes) -> AgentQuestion:
    """The question in a hook's input. Raises `NotAQuestionError`."""
    try:
        event = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise NotAQuestionError(f"the input is not JSON: {error}") from None
    if not isinstance(event, dict) or event.get("hook_event_name") != EVENT:
        raise NotAQuestionError(f"the input is not a {EVENT} event")
    tool, given = event.get("tool_name"), event.get("tool_input")
    if not isinstance(tool, str) or not tool or not isinstance(given, dict):
        raise NotAQuestionError("the event has no tool_name and tool_input")
    if tool in OWN_PROMPTS:
        raise NotAQuestionError(f"{tool} is the agent's own question")
    return AgentQuestion(
        cleaned(tool),
        tool_text(tool, given) or "{}",
        _said(event, "session_id")[:_MAX_SESSION],
        _said(event, "cwd"),
        _said(event, "permission_mode"),
    )


def answer(response: Response) -> str:
    """What the agent reads: a decision, or nothing, after which it asks by itself."""
    if response.status is Status.OK:
        return _decision({"behavior": "allow"})
    if response.status is Status.DENIED:
        note = f" They said: {response.decision_note}" if response.decision_note else ""
        return _decision({"behavior": "deny", "message": DENIED + note})
    return ""


def _decision(decision: Mapping[str, str]) -> str:
    specific = {"hookEventName": EVENT, "decision": decision}
    return json.dumps({"hookSpecificOutput": specific}) + "\n"


def _said(event: Mapping[str, object], name: str) -> str:
    value = event.get(name)
    return cleaned(value) if isinstance(value, str) else ""

"""Our messages, taken apart for both wires."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import msgspec


class EarlierCall(NamedTuple):
    """A tool call of an earlier answer."""

    id: str
    name: str
    input: dict[str, Any]


class EarlierOutput(NamedTuple):
    """What a tool answered."""

    call_id: str
    text: str


class Thought(NamedTuple):
    """A thought its provider wants back; all there is of a `redacted` one is its signature."""

    text: str
    signature: str
    redacted: bool


def plain(content: Any) -> str:
    """What a person said."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(str(part.get("text", "")) for part in parts if isinstance(part, dict))


def answered(content: Any) -> Iterator[str | Thought | EarlierCall]:
    """What a model said."""
    if not isinstance(content, list):
        yield str(content or "")
        return
    for part in content:
        match part.get("type"):
            case "text":
                yield str(part.get("text", ""))
            case "reasoning" if part.get("signature"):
                yield Thought(
                    str(part.get("text", "")), part["signature"], bool(part.get("redacted"))
                )
            case "tool-call":
                yield EarlierCall(part["toolCallId"], part["toolName"], _input(part.get("input")))


def _input(given: Any) -> dict[str, Any]:
    """Arguments as an object: servers refuse to see again what is none."""
    if isinstance(given, dict):
        return given
    if not given:
        return {}
    if isinstance(given, str):
        try:
            found = msgspec.json.decode(given)
        except msgspec.DecodeError:
            found = None
        if isinstance(found, dict):
            return found
    return {"INVALID_JSON": given}


def outputs(content: Any) -> Iterator[EarlierOutput]:
    """What tools answered."""
    for part in content if isinstance(content, list) else []:
        output: Any = part.get("output")
        value = output.get("value") if isinstance(output, Mapping) else output
        text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
        yield EarlierOutput(part["toolCallId"], text)

"""What a form of asking must do, and the words for a server's mistakes."""

from collections.abc import Mapping
from typing import Any, Protocol

import msgspec

from stringd.runs.models.port import ModelEvent, ModelRequest


class SaidError(Exception):
    """The server said in its stream that it failed; `status` as HTTP would have it, or None."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class CutError(Exception):
    """The stream ended before its end was announced."""


class EventReader(Protocol):
    """Reads the events of one answer. Lenient: a server may leave out what is not needed."""

    @property
    def closing(self) -> bool:
        """Whether the answer has its end, though something may follow."""

    @property
    def closed(self) -> bool:
        """Whether nothing may follow."""

    def take(self, data: str) -> list[ModelEvent]:
        """The data of one event. Raises `SaidError`, or `ValueError` when it makes no sense."""

    def end(self) -> list[ModelEvent]:
        """What is known only at the end: tools, and how it ended. Raises `CutError`."""


class Wire(Protocol):
    """One model of one provider, in the form its server wants."""

    @property
    def url(self) -> str: ...

    @property
    def headers(self) -> Mapping[str, str]: ...

    def body(self, request: ModelRequest, options: Mapping[str, Any]) -> bytes:
        """A request; `options` are the provider's own fields, in snake case."""

    def reader(self) -> EventReader: ...


def object_of(data: str) -> dict[str, Any]:
    """The object in an event's data. Raises `ValueError`."""
    try:
        found = msgspec.json.decode(data)
    except msgspec.DecodeError:
        found = _lenient(data)
    if not isinstance(found, dict):
        raise ValueError("an event holds no object")
    return found


def _lenient(data: str) -> Any:
    """JSON that may hold half a character, whose other half is in the next event."""
    import json

    try:
        return json.loads(data)
    except RecursionError:
        raise ValueError("an event is nested too deeply") from None


def text_of(content: Any) -> str:
    """Text that is a string, a list of parts, or nothing."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(
            str(part.get("text") or "") if isinstance(part, dict) else str(part)
            for part in content
            if isinstance(part, dict | str)
        )
    return ""


def error_of(error: Any) -> str:
    """What a server says went wrong."""
    said = error.get("message") if isinstance(error, dict) else error
    return str(said) if said else msgspec.json.encode(error).decode()

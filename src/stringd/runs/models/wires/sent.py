"""What was sent before is not built again: an agent's conversation only grows."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from stringd.formats.surrogates import paired
from stringd.runs.models.port import ModelRequest, ToolOffer

Encode = Callable[[Mapping[str, Any]], list[Any]]
_encode = msgspec.json.Encoder().encode


class Sent:
    """The messages and tools of one agent as JSON, kept between its requests.

    A message must not change once it was sent.
    """

    __slots__ = ("_messages", "_offers", "_parts", "_tools")

    def __init__(self) -> None:
        self._messages: list[Mapping[str, Any]] = []
        self._parts = bytearray()
        self._offers: list[ToolOffer] = []
        self._tools = b""

    def messages(self, messages: Sequence[Mapping[str, Any]], form: Encode) -> bytearray:
        """The members of a JSON array, with commas between; `form` translates a message."""
        known = self._messages
        # Equal at the speed of comparing pointers: they are the same objects as last time.
        if list(messages[: len(known)]) != known:
            known.clear()
            self._parts.clear()
        for message in messages[len(known) :]:
            for translated in form(message):
                if self._parts:
                    self._parts += b","
                self._parts += encoded(translated)
            known.append(message)
        return self._parts

    def tools(self, offers: Sequence[ToolOffer], form: Callable[[ToolOffer], Any]) -> bytes:
        """A JSON array."""
        if self._offers != list(offers) or not self._tools:
            self._offers = list(offers)
            self._tools = encoded([form(offer) for offer in offers])
        return self._tools


def sent_of(request: ModelRequest, wire: str) -> Sent:
    """What an earlier request of the same conversation built."""
    found = request.kept.get(wire)
    if not isinstance(found, Sent):
        found = request.kept[wire] = Sent()
    return found


def encoded(value: Any) -> bytes:
    """JSON, also of text that holds half a character."""
    try:
        return _encode(value)
    except UnicodeEncodeError:
        return _encode(_sendable(value))


def _sendable(value: Any) -> Any:
    match value:
        case str():
            return paired(value)
        case dict():
            return {_sendable(key): _sendable(each) for key, each in value.items()}
        case list() | tuple():
            return [_sendable(each) for each in value]
    return value


def body(
    fields: Mapping[str, Any],
    messages: bytes | bytearray,
    *,
    first: Sequence[Any] = (),
    tools: bytes = b"",
) -> bytes:
    """One JSON object: plain fields, messages that are JSON already behind `first`, and tools.

    Tools among the plain fields win.
    """
    if "tools" in fields:
        tools = b""
    members = [*map(encoded, first), *([messages] if messages else [])]
    return b"".join(
        (
            encoded(fields)[:-1],
            b',"messages":[',
            b",".join(members),
            b"]",
            b',"tools":' if tools else b"",
            tools,
            b"}",
        )
    )

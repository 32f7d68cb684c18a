"""Frames to requests, messages to frames. A frame that is not a request becomes a `Refusal`."""

from collections.abc import Iterable
from typing import Any, Final, NamedTuple, get_args

import msgspec
from msgspec import UNSET, inspect

from stringd.formats import shapes
from stringd.formats.surrogates import without_lone_escapes
from stringd.wire.runs.messages import DaemonMessage, Message
from stringd.wire.runs.requests import NEITHER_ID_NOR_PATH, ClientMessage, PrepareRun, RunsRequest


class Refusal(NamedTuple):
    """Why a frame was not accepted, with the raw `requestId` when there was one."""

    code: str
    message: str
    request_id: Any = UNSET


_requests: Final[msgspec.json.Decoder[ClientMessage]] = msgspec.json.Decoder(ClientMessage)
_messages: Final[msgspec.json.Decoder[DaemonMessage]] = msgspec.json.Decoder(DaemonMessage)
_encoder: Final = msgspec.json.Encoder()
_INVALID_JSON: Final = Refusal("PARSE_ERROR", "Invalid JSON")


def decode_request(frame: str | bytes) -> ClientMessage | Refusal:
    """One inbound frame as a request, or the refusal to answer it with."""
    try:
        return _requests.decode(frame)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        raw = frame.encode("utf-8", "replace") if isinstance(frame, str) else frame
        # Clients cut texts inside a character; the half that is left does not make it invalid.
        whole = without_lone_escapes(raw)
        return _explain(frame) if whole == raw else decode_request(whole)


def decode_message(frame: str | bytes) -> DaemonMessage:
    """One message of the daemon. Raises `msgspec.ValidationError` when it is none of ours."""
    return _messages.decode(frame)


def encode(message: Message) -> bytes:
    """A message as one JSON frame."""
    return _encoder.encode(message)


def encode_request(request: ClientMessage) -> bytes:
    """A request as one JSON frame."""
    return _encoder.encode(request)


def _explain(frame: str | bytes) -> Refusal:
    # The typed decoder may stop at a schema problem before it meets broken JSON behind it.
    try:
        raw = msgspec.json.decode(frame)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return _INVALID_JSON
    request_id = raw.get("requestId", UNSET) if isinstance(raw, dict) else UNSET
    text = "; ".join(f"{shapes.dotted(i.path)}: {i.problem}" for i in _issues(raw))
    return Refusal("VALIDATION_ERROR", f"Invalid message: {text}", request_id)


def _issues(raw: object) -> list[shapes.Issue]:
    if not isinstance(raw, dict):
        return [shapes.Issue((), f"Expected object, received {shapes.kind(raw)}")]
    known = {_tag(kind): kind for kind in get_args(ClientMessage)}
    name = raw.get("type")
    if not isinstance(name, str) or name not in known:
        wanted = " | ".join(f"'{tag}'" for tag in known)
        return [shapes.Issue(("type",), f"Invalid discriminator value. Expected {wanted}")]
    kind = known[name]
    issues = _shape(inspect.type_info(kind)).check(raw)
    if not issues and kind is PrepareRun:
        issues = [shapes.Issue(("strategyPath",), NEITHER_ID_NOR_PATH)]
    return issues or [shapes.Issue((), "Invalid input")]


def _tag(kind: type[RunsRequest]) -> str:
    return str(kind.__struct_config__.tag)


def _shape(info: inspect.Type) -> shapes.Shape:
    """The shape a request field's type asks for."""
    match info:
        case inspect.StructType(fields=fields):
            named = {f.encode_name: _shape(f.type) for f in fields}
            required = {f.encode_name for f in fields if f.required}
            return shapes.Fields(
                {name: shape for name, shape in named.items() if name in required},
                {name: shape for name, shape in named.items() if name not in required},
                strict=False,
            )
        case inspect.UnionType(types=types):
            return _shape(next(t for t in types if type(t).__name__ != "UnsetType"))
        case inspect.StrType(min_length=least):
            return shapes.TextShape(filled=bool(least))
        case inspect.LiteralType(values=values):
            return shapes.OneOf(_in_order(map(str, values)))
        case inspect.BoolType():
            return shapes.Flag()
        case inspect.IntType(gt=above, ge=least):
            return shapes.Number(whole=True, above=above, at_least=least)
        case inspect.FloatType(gt=above, ge=least):
            return shapes.Number(above=above, at_least=least)
        case inspect.ListType(item_type=item):
            return shapes.Items(_shape(item))
        case inspect.DictType():
            return shapes.Entries(shapes.Anything())
        case _:
            return shapes.Anything()


# msgspec reports literals sorted; people read them in the order the protocol lists them.
_PROTOCOL_ORDER: Final = (
    *("allow", "deny", "ask", "allow-session", "deny-session"),
    *("api", "oauth", "custom"),
)


def _in_order(values: Iterable[str]) -> tuple[str, ...]:
    rank = {name: place for place, name in enumerate(_PROTOCOL_ORDER)}
    return tuple(sorted(values, key=lambda value: rank.get(value, len(rank))))

"""`POST /exec`: the request body, the command label and the three events of the answer."""

from typing import Final

import msgspec

from stringd.wire.result import Result, response_text, sendable
from stringd.wire.topic import Topic

LABEL_UNITS: Final = 80
"""A longer command line is shown as its first 77 UTF-16 units and `...`."""

SSE_HEADERS: Final = (
    b"Content-Type: text/event-stream\r\nCache-Control: no-cache\r\nX-Accel-Buffering: no\r\n"
)
"""Header lines of the answer; `Connection: keep-alive` is the connection's own to say."""

_DONE: Final = b"event: done\ndata: {}\n\n"


class Meta(msgspec.Struct, frozen=True, gc=False):
    """The document a topic shows after a command."""

    uri: str
    title: str | None
    current_block: str | None
    menus: tuple[str, ...] = ()
    actions: tuple[str, ...] = ()
    history_length: int = 0
    block_id: str | None = None
    converted: bool = False
    warnings: tuple[str, ...] = ()


class Head(msgspec.Struct, frozen=True, gc=False):
    """The first event; the order of the fields is the order on the wire."""

    ok: bool
    code: str | None
    cmd: str
    request_id: str | None
    user_id: str
    topic: str
    topic_type: str
    meta: Meta | None


_encode = msgspec.json.Encoder().encode


def command_label(cmd: str) -> str:
    """The first line of a command, shortened for display without splitting a character."""
    line = cmd.strip()
    if "\n" in line:
        line = line.partition("\n")[0].rstrip()
    if len(line) <= LABEL_UNITS // 2 or (line.isascii() and len(line) <= LABEL_UNITS):
        return line
    units = line.encode("utf-16-le", "surrogatepass")
    if len(units) <= LABEL_UNITS * 2:
        return line
    kept = units[: (LABEL_UNITS - 3) * 2].decode("utf-16-le", "ignore")
    return f"{kept}..."


def exec_events(
    *,
    user_id: str,
    topic: Topic,
    label: str,
    request_id: str | None,
    result: Result,
    meta: Meta | None,
    with_diff: bool = False,
) -> bytes:
    """The complete SSE body of one answer: `head`, `content`, `done`."""
    head = Head(
        result.ok,
        None if result.ok else result.code,
        label,
        request_id,
        user_id,
        topic.canonical,
        topic.type,
        meta,
    )
    content = f"{_prefix(label, request_id)}\n{response_text(result, with_diff=with_diff)}"
    try:
        return b"event: head\ndata: %b\n\nevent: content\ndata: %b\n\n%b" % (
            _encode(head),
            _encode(content),
            _DONE,
        )
    except UnicodeEncodeError:
        return _replacing_lone_surrogates(head, content)


def _prefix(label: str, request_id: str | None) -> str:
    if not request_id:
        return f"re: {label}"
    # Clients strip the first line, so an id with line breaks must not make it two.
    return f"re: [{' '.join(request_id.splitlines())}] {label}"


def _replacing_lone_surrogates(head: Head, content: str) -> bytes:
    """Files and their names may hold bytes that are not UTF-8."""
    tidy = msgspec.to_builtins(head, str_keys=True)
    return b"event: head\ndata: %b\n\nevent: content\ndata: %b\n\n%b" % (
        _encode(encodable(tidy)),
        _encode(encodable(content)),
        _DONE,
    )


def encodable(value: object) -> object:
    """A JSON value as UTF-8 can carry it."""
    match value:
        case str():
            return sendable(value)
        case dict():
            return {encodable(key): encodable(item) for key, item in value.items()}
        case list() | tuple():
            return [encodable(item) for item in value]
    return value

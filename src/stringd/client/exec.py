"""Asking the daemon to run one command, and reading its three events.

Imports nothing slow: `json` is left out on purpose, its C core does both jobs.
"""

import os

try:
    from _json import encode_basestring, scanstring
except ImportError:
    from json.decoder import scanstring  # type: ignore[attr-defined,no-redef]
    from json.encoder import encode_basestring

from stringd.client.http import DaemonConnection, HttpReply
from stringd.system.vouched import starts_shell, vouched
from stringd.wire.sse import read_events


class ExecReply:
    """What a command answered. `content` has no `re:` line; `code` is None on success."""

    __slots__ = ("code", "content", "ok")

    def __init__(self, ok: bool, code: str | None, content: str) -> None:
        self.ok = ok
        self.code = code
        self.content = content


def json_object(**fields: str | dict[str, str] | None) -> bytes:
    """A JSON object of strings and of objects of strings; fields that are None are left out."""
    return _json(fields).encode("utf-8", "surrogatepass")


def _json(value: "str | dict[str, str] | dict[str, str | dict[str, str] | None]") -> str:
    if isinstance(value, str):
        return str(encode_basestring(value))
    pairs = (
        f"{encode_basestring(key)}:{_json(each)}" for key, each in value.items() if each is not None
    )
    return f"{{{','.join(pairs)}}}"


def execute(
    connection: DaemonConnection, user_id: str, topic: str, cmd: str, cwd: str | None = None
) -> ExecReply:
    """Run one command; a shell it starts has our environment.

    Raises `TransportError` only when the daemon cannot be talked to.
    """
    env = vouched(os.environ) if starts_shell(topic, cmd) else None
    reply = connection.request(
        "POST",
        "/exec",
        json_object(cmd=cmd, topic=topic, cwd=cwd, env=env),
        {"X-User-Id": user_id, "Accept": "text/event-stream"},
    )
    return _refused(reply) if reply.status != 200 else parse_events(reply.body)


def parse_events(body: bytes) -> ExecReply:
    """The result in an SSE body; one without all three events is incomplete."""
    events = dict(read_events(body))
    head, content = events.get("head"), events.get("content")
    if head is None or content is None or "done" not in events or not content.startswith('"'):
        return ExecReply(False, "STREAM_INCOMPLETE", "The answer ended before it was complete.")
    text, _ = scanstring(content, 1)
    code = None
    if not head.startswith('{"ok":true'):
        import json

        code = json.loads(head).get("code")
    return ExecReply(code is None and head.startswith('{"ok":true'), code, strip_prefix(text))


def strip_prefix(content: str) -> str:
    """Content without its `re: …` line."""
    return content.partition("\n")[2] if content.startswith("re: ") else content


def _refused(reply: HttpReply) -> ExecReply:
    import json

    text = reply.body.decode("utf-8", "replace")
    try:
        fields = json.loads(text)
    except ValueError:
        fields = {}
    if not isinstance(fields, dict):
        fields = {}
    error = fields.get("error")
    if error in ("QUEUE_FULL", "QUEUE_TIMEOUT"):
        return ExecReply(False, error, str(fields.get("message", "")))
    return ExecReply(False, "HTTP_ERROR", str(error or fields.get("message") or text))

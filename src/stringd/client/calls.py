"""The requests of the String protocol and the reading of their answers. No I/O: both clients
send a `ClientCall` in their own way and hand the `HttpReply` back.
"""

import json
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

import stringd.client.values as values
from stringd.client.errors import RequestRefusedError
from stringd.client.exec import strip_prefix
from stringd.client.http import HttpReply, TransportError
from stringd.client.values import ExecResult
from stringd.system.vouched import starts_shell
from stringd.wire.sse import read_events

INCOMPLETE = "The answer ended before it was complete. The command may have run."


class ClientCall(NamedTuple):
    """One request; a body is JSON."""

    method: str
    path: str
    body: bytes | None = None
    headers: dict[str, str] | None = None


def exec_call(
    user: str,
    topic: str,
    cmd: str,
    request_id: str | None = None,
    cwd: str | None = None,
    env: dict[str, str] | None = None,
) -> ClientCall:
    """`POST /exec`."""
    sent = env if env and starts_shell(topic, cmd) else None
    fields = _present(cmd=cmd, topic=topic, request_id=request_id, cwd=cwd, env=sent)
    headers = {"X-User-Id": user, "Accept": "text/event-stream"}
    return ClientCall("POST", "/exec", _json(fields), headers)


def chanflow_call(
    user: str, text: str, cwd: str | None = None, env: dict[str, str] | None = None
) -> ClientCall:
    """`POST /chanflow`."""
    headers = {"X-User-Id": user}
    return ClientCall(
        "POST", "/chanflow", _json(_present(text=text, cwd=cwd, env=env or None)), headers
    )


def register_call(user: str, home: str, allowed_paths: list[str] | None = None) -> ClientCall:
    """`POST /users`."""
    return ClientCall(
        "POST", "/users", _json(_present(id=user, home=home, allowed_paths=allowed_paths))
    )


def delete_user_call(user: str) -> ClientCall:
    """`DELETE /users/:id`."""
    return ClientCall("DELETE", f"/users/{quote(user, safe='')}")


def sessions_call(user: str | None) -> ClientCall:
    """`GET /sessions`, of one user or of all."""
    return ClientCall(
        "GET", "/sessions" if user is None else f"/sessions?{urlencode({'user_id': user})}"
    )


def open_topic_call(user: str, topic: str) -> ClientCall:
    """`POST /sessions`."""
    return ClientCall("POST", "/sessions", _json({"user_id": user, "topic": topic}))


def close_topic_call(user: str, topic: str) -> ClientCall:
    """`DELETE /sessions/:user_id/:topic`."""
    return ClientCall("DELETE", f"/sessions/{quote(user, safe='')}/{quote(topic, safe=':')}")


def parse_exec(reply: HttpReply) -> ExecResult:
    """The result of a command, whatever the daemon answered."""
    if reply.status != 200:
        return _refused(reply)
    events = dict(read_events(reply.body))
    try:
        head = json.loads(events["head"])
        content = json.loads(events["content"])
        json.loads(events["done"])
        return ExecResult(
            head["ok"] is True,
            head["code"],
            strip_prefix(content),
            head.get("meta"),
            head.get("topic"),
            head.get("request_id"),
        )
    except (KeyError, TypeError, AttributeError, ValueError):
        return broken_off()


def shut_out(error: RequestRefusedError) -> ExecResult:
    """The result of a command whose user the daemon would not take."""
    return ExecResult(False, "HTTP_ERROR", error.reason)


def broken_off() -> ExecResult:
    """The result of a command whose answer did not come to its end."""
    return ExecResult(False, "STREAM_INCOMPLETE", INCOMPLETE)


def parse_json(reply: HttpReply) -> dict[str, Any]:
    """The object of a successful answer. Raises `RequestRefusedError`, `TransportError`."""
    try:
        fields = json.loads(reply.body)
    except ValueError:
        fields = None
    if reply.status != 200:
        raise RequestRefusedError(reply.status, _reason(fields, reply))
    if not isinstance(fields, dict):
        raise TransportError("the daemon's answer is not a JSON object")
    return fields


def parse_text(reply: HttpReply) -> str:
    """The text of a successful answer. Raises `RequestRefusedError`."""
    if reply.status != 200:
        parse_json(reply)
    return reply.body.decode("utf-8", "replace")


def parse_health(reply: HttpReply) -> values.Health:
    """`GET /health`. Raises `RequestRefusedError`, `TransportError`."""
    fields = parse_json(reply)
    if not {"ok", "users", "sessions"} <= fields.keys():
        raise TransportError("what answers there is not stringd")
    return values.health(fields)


def parse_users(reply: HttpReply) -> list[values.RegisteredUser]:
    """`GET /users`. Raises `RequestRefusedError`, `TransportError`."""
    return [values.user(each) for each in parse_json(reply)["users"]]


def parse_topics(reply: HttpReply) -> list[values.TopicState]:
    """`GET /sessions`. Raises `RequestRefusedError`, `TransportError`."""
    return [values.topic_state(each) for each in parse_json(reply)["sessions"]]


def _refused(reply: HttpReply) -> ExecResult:
    try:
        fields = json.loads(reply.body)
    except ValueError:
        fields = None
    code = fields.get("error") if isinstance(fields, dict) else None
    if code in ("QUEUE_FULL", "QUEUE_TIMEOUT"):
        assert isinstance(fields, dict)
        return ExecResult(False, code, str(fields.get("message", "")))
    return ExecResult(False, "HTTP_ERROR", _reason(fields, reply))


def _reason(fields: object, reply: HttpReply) -> str:
    text = reply.body.decode("utf-8", "replace")
    if not isinstance(fields, dict):
        return text
    return str(fields.get("error") or fields.get("message") or text)


def _present(**fields: object) -> dict[str, object]:
    return {name: value for name, value in fields.items() if value is not None}


def _json(fields: dict[str, object]) -> bytes:
    return json.dumps(fields, ensure_ascii=False).encode("utf-8", "replace")

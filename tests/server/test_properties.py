"""Whatever is sent, the answer is complete and the daemon stays healthy."""

import json
import re

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.requirements import proves
from tests.support.daemon import Daemon
from tests.support.http import Answer, User, Wire, message, request

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
# No shell among the topics and commands: what is generated here must not be run.
COMMANDS = st.sampled_from(["/info", "/help", "/ls", "/topics", "/set {x} = 1", "nonsense"])
TEXT = COMMANDS | st.text(max_size=30).filter(lambda text: "exec" not in text.lower())
TOPICS = st.sampled_from(["file:main", "app:x:y", "web:x", "notes", "a b", ""]) | st.text(
    max_size=10
).filter(lambda text: "bash" not in text)
BODIES = st.one_of(
    st.fixed_dictionaries(
        {},
        optional={
            "cmd": TEXT | JSON,
            "topic": TOPICS | JSON,
            "request_id": st.text(max_size=10) | JSON,
            "user_id": st.sampled_from(["u", "nobody"]) | JSON,
            "id": st.just("fuzzed") | JSON,
            "home": st.just("/tmp/fuzzed") | st.text(max_size=5) | JSON,
            "allowed_paths": JSON,
        },
    ).map(lambda value: json.dumps(value).encode()),
    JSON.map(lambda value: json.dumps(value).encode()),
    st.binary(max_size=60),
)
PATHS = st.sampled_from(
    ["/exec", "/users", "/sessions", "/users/fuzzed", "/sessions/u/main", "/health", "/", "/x"]
) | st.text("abc/%0fF.:?=&+ü", max_size=12).map(
    lambda text: "/" + "".join(c if c.isascii() else "%C3%BC" for c in text)
)
METHODS = st.sampled_from(["GET", "POST", "POST", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"])
VALUES = st.text(st.characters(codec="latin-1", exclude_categories=["Cc"]), max_size=12)
HEADERS = st.fixed_dictionaries(
    {},
    optional={
        "X-User-Id": st.sampled_from(["u", "nobody", ""]),
        "Content-Type": st.sampled_from(["application/json", "text/plain", "a/b; c"]) | VALUES,
        "Host": st.sampled_from(["localhost", "evil.com"]) | VALUES,
        "Origin": st.sampled_from(["null", "http://localhost"]) | VALUES,
        "Accept": VALUES,
        "Cookie": VALUES,
    },
)
quick = settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


def complete(answer: Answer) -> None:
    """An answer is one of the shapes the protocol knows."""
    kind = answer.headers.get("Content-Type")
    if answer.status == 204:
        assert answer.body == b""
    elif kind == "text/event-stream":
        assert answer.status == 200
        (first, head), (second, content), last = answer.events
        assert (first, second, last) == ("head", "content", ("done", {}))
        assert head["ok"] is (head["code"] is None and "\nERROR(" not in content)
    else:
        assert kind == "application/json"
        assert answer.status == 200 or 400 <= answer.status < 500
        assert answer.status == 200 or re.search(r"\w", answer.json["error"])


@proves("HTTP-08", "HTTP-14", "SSE-02")
@quick
@given(METHODS, PATHS, HEADERS, st.none() | BODIES)
def test_every_request_gets_a_complete_answer(
    daemon: Daemon,
    user: User,
    method: str,
    path: str,
    headers: dict[str, str],
    body: bytes | None,
) -> None:
    told = {name: user.id if value == "u" else value for name, value in headers.items()}
    data = None if body is None else body.replace(b'"u"', json.dumps(user.id).encode())
    if path.rstrip("?").endswith("shutdown"):
        return
    head = message(method, path, data, told)
    with Wire(daemon.port) as wire:
        complete(wire.send(_latin(head, told)).receive())
    assert request(daemon.port, "GET", "/health").json["ok"] is True


def _latin(data: bytes, headers: dict[str, str]) -> bytes:
    """Header values as single bytes, the way HTTP carries them."""
    for value in headers.values():
        data = data.replace(f": {value}\r\n".encode(), b": %b\r\n" % value.encode("latin-1"))
    return data


@proves("HTTP-14")
@quick
@given(st.binary(max_size=200))
def test_bytes_that_are_no_http_are_answered_and_closed(daemon: Daemon, noise: bytes) -> None:
    with Wire(daemon.port) as wire:
        answer = wire.send(noise + b"\r\n\r\n").end().rest()
    assert answer == b"" or re.match(rb"HTTP/1\.1 (200|204|4\d\d) ", answer)
    assert request(daemon.port, "GET", "/health").json["ok"] is True


@proves("HTTP-13")
@quick
@given(
    st.lists(st.sampled_from(["/info", "/help", "/set {x} = 1"]), min_size=1, max_size=6), st.data()
)
def test_however_requests_are_cut_their_answers_are_the_same(
    user: User, commands: list[str], data: st.DataObject
) -> None:
    stream = b"".join(user.message(command) for command in commands)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=5)))
    with Wire(user.port) as wire:
        for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
            wire.send(stream[start:end])
        answers = [wire.receive() for _ in commands]
    assert [answer.events[0][1]["cmd"] for answer in answers] == commands

"""HTTP itself: headers on every answer, odd requests, limits, and what keeps a connection."""

import json
import socket

import pytest

from tests.requirements import proves
from tests.support.daemon import Daemon
from tests.support.http import CORS, User, Wire, message, request

MAX_BODY = 10 * 1024 * 1024


@proves("HTTP-03", "HTTP-04", "HTTP-01")
@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/health", 200),
        ("GET", "/users", 200),
        ("GET", "/sessions", 200),
        ("POST", "/users", 400),
        ("POST", "/exec", 400),
        ("DELETE", "/sessions/x", 400),
        ("GET", "/nothing", 404),
        ("OPTIONS", "/exec", 204),
        ("GET", "/ws", 400),
    ],
)
def test_every_answer_carries_the_cors_headers(
    daemon: Daemon, method: str, path: str, status: int
) -> None:
    answer = request(daemon.port, method, path)
    assert answer.status == status
    assert CORS.items() <= answer.headers.items()


@proves("HTTP-05")
@pytest.mark.parametrize("path", ["/", "/exec", "/users/x", "/nothing", "*", "/health"])
def test_options_is_answered_without_content(daemon: Daemon, path: str) -> None:
    with Wire(daemon.port) as wire:
        wire.send(b"OPTIONS %b HTTP/1.1\r\nHost: evil.example\r\n" % path.encode())
        wire.send(b"Origin: https://evil.example\r\nConnection: close\r\n\r\n")
        assert wire.rest() == (
            b"HTTP/1.1 204 No Content\r\nAccess-Control-Allow-Origin: *\r\n"
            b"Access-Control-Allow-Headers: Content-Type, X-User-Id\r\nConnection: close\r\n\r\n"
        )


@proves("HTTP-10", "HTTP-08")
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/"),
        ("GET", "/exec"),
        ("PUT", "/exec"),
        ("PATCH", "/users"),
        ("DELETE", "/users"),
        ("POST", "/health"),
        ("GET", "/shutdown"),
        ("POST", "/sessions/a/b"),
        ("TRACE", "/users"),
        ("GET", "/Health"),
        ("GET", "//health"),
        ("GET", "/health/"),
    ],
)
def test_an_unknown_path_or_method_is_named(daemon: Daemon, method: str, path: str) -> None:
    answer = request(daemon.port, method, path)
    assert (answer.status, answer.json) == (404, {"error": f"Not found: {method} {path}"})


@proves("HTTP-10")
def test_a_query_is_no_part_of_the_path(daemon: Daemon) -> None:
    assert request(daemon.port, "GET", "/nothing?a=1").json == {"error": "Not found: GET /nothing"}
    assert request(daemon.port, "GET", "/health?probe").status == 200


@proves("HTTP-10", "HTTP-12")
def test_head_is_answered_without_a_body(daemon: Daemon) -> None:
    with Wire(daemon.port) as wire:
        status, headers = wire.send(message("HEAD", "/users")).head()
        assert (status, headers["Content-Length"]) == (404, "34")
        assert wire.send(message("GET", "/users")).receive().status == 200


@proves("HTTP-06", "HTTP-07")
@pytest.mark.parametrize(
    ("kind", "status"),
    [
        ("application/json", 200),
        ("application/json; charset=utf-8", 200),
        ("Application/JSON", 200),
        ("application/vnd.api+json", 200),
        ("", 200),
        ("text/plain", 415),
        ("application/x-www-form-urlencoded", 415),
        ("multipart/form-data; boundary=x", 415),
        ("application/jsonp", 415),
    ],
)
def test_a_body_must_be_json_if_it_is_typed(user: User, kind: str, status: int) -> None:
    for path, body in (("/exec", {"cmd": "/info"}), ("/sessions", {"user_id": user.id})):
        headers = {"X-User-Id": user.id, "Content-Type": kind}
        answer = request(user.port, "POST", path, body, headers)
        assert answer.status == status
        if status == 415:
            named = kind.partition(";")[0].lower()
            assert answer.json == {"error": f"Content-Type must be application/json, not {named}"}


@proves("HTTP-02", "TRUST-03")
def test_endpoints_without_a_user_ignore_the_header(daemon: Daemon) -> None:
    for value in ("nobody", "", "\u00fc"):
        headers = {"X-User-Id": value.encode().decode("latin-1")}
        assert request(daemon.port, "GET", "/health", headers=headers).status == 200
        assert request(daemon.port, "GET", "/users", headers=headers).status == 200


@proves("TRUST-03")
def test_a_user_header_may_be_utf8(daemon: Daemon, user: User) -> None:
    User(daemon.port, "zoë", user.home)
    headers = {"X-User-Id": "zoë".encode().decode("latin-1")}
    answer = request(daemon.port, "POST", "/exec", {"cmd": "/info"}, headers)
    assert answer.events[0][1]["user_id"] == "zoë"


@proves("HTTP-12")
def test_a_connection_is_kept_unless_the_client_says_otherwise(daemon: Daemon) -> None:
    with Wire(daemon.port) as wire:
        for _ in range(3):
            answer = wire.send(message("GET", "/users")).receive()
            assert answer.headers["Connection"] == "keep-alive"
        wire.send(message("GET", "/users", headers={"Connection": "close"}))
        assert wire.receive().headers["Connection"] == "close"
        assert wire.rest() == b""


@proves("HTTP-12")
@pytest.mark.parametrize("wish", ["", "Connection: keep-alive\r\n"])
def test_http_1_0_is_spoken_too(user: User, wish: str) -> None:
    body = json.dumps({"cmd": "/exec echo hi"}).encode()
    head = f"POST /exec HTTP/1.0\r\nHost: 127.0.0.1\r\nX-User-Id: {user.id}\r\n{wish}"
    with Wire(user.port) as wire:
        wire.send(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        status, headers = wire.head()
        assert status == 200
        assert "Transfer-Encoding" not in headers
        # An answer whose length was known in time may keep the connection.
        answer = wire.body(headers) if "Content-Length" in headers else wire.rest()
        assert answer.endswith(b"event: done\ndata: {}\n\n")


@proves("HTTP-13")
def test_pipelined_requests_are_answered_in_order(user: User) -> None:
    slow = user.message("/exec echo slow")
    with Wire(user.port) as wire:
        wire.send(slow + message("GET", "/nothing") + user.message("/info") + slow)
        wire.send(message("GET", "/last"))
        answers = [wire.receive() for _ in range(5)]
    assert [answer.status for answer in answers] == [200, 404, 200, 200, 404]
    assert answers[0].events[1][1].endswith("slow")
    assert answers[4].json == {"error": "Not found: GET /last"}


@proves("HTTP-13")
def test_a_flood_of_pipelined_requests_is_answered_whole(daemon: Daemon) -> None:
    with Wire(daemon.port) as wire:
        wire.send(message("GET", "/nothing") * 2000)
        assert all(wire.receive().status == 404 for _ in range(2000))


@proves("HTTP-13", "HTTP-14")
def test_requests_before_a_broken_one_are_answered(daemon: Daemon) -> None:
    with Wire(daemon.port) as wire:
        wire.send(message("GET", "/nothing") + b"BROKEN\r\n\r\n")
        assert wire.receive().status == 404
        assert wire.receive().status == 400
        assert wire.rest() == b""


@proves("HTTP-14", "HTTP-08")
@pytest.mark.parametrize(
    "data",
    [
        b"nonsense\r\n\r\n",
        b"FOO / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /\xff HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        b"GET /\x00 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        b"GET /users HTTP/1.1\r\nno colon\r\n\r\n",
        b"GET /users HTTP/1.1\r\nbad name: x\r\n\r\n",
        b"GET /users HTTP/1.1\r\nHost: 127.0.0.1\r\nX: a\x00b\r\n\r\n",
        b"GET /users HTTP/1.1\r\nHost: 127.0.0.1\r\nX: a\r\n folded\r\n\r\n",
        b"GET /users HTTP/1.1\nHost: 127.0.0.1\n\n",
        b"POST /users HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: -1\r\n\r\n",
        b"POST /users HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1e3\r\n\r\n",
        b"POST /users HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 99999999999999999999\r\n\r\n",
        b"POST /users HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n{}",
        b"POST /users HTTP/1.1\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST /users HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip\r\n\r\n",
        b"POST /users HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"CONNECT 127.0.0.1:80 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    ],
)
def test_what_is_no_request_is_answered_and_the_connection_closed(
    daemon: Daemon, data: bytes
) -> None:
    with Wire(daemon.port) as wire:
        answer = wire.send(data).receive()
        assert answer.status == 400
        assert list(answer.json) == ["error"]
        assert len(answer.json["error"]) > 10
        assert answer.headers["Connection"] == "close"
        assert CORS.items() <= answer.headers.items()
        assert wire.rest() == b""
    assert request(daemon.port, "GET", "/health").status == 200


@proves("HTTP-14")
def test_a_websocket_is_offered_at_one_path_only(daemon: Daemon) -> None:
    asked = (
        b"GET /exec HTTP/1.1\r\nHost: localhost\r\nConnection: upgrade\r\n"
        b"Upgrade: websocket\r\n\r\n"
    )
    with Wire(daemon.port) as wire:
        answer = wire.send(asked).receive()
    assert answer.status == 404
    assert "GET /ws" in answer.json["error"]


@proves("HTTP-14")
@pytest.mark.parametrize(
    "begun",
    [
        b"G",
        b"GET /users HTTP/1.1\r\nHost: 127.0.0.1\r\n",
        b"POST /users HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9\r\n\r\n{}",
        b"POST /users HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
    ],
)
def test_a_request_that_ends_half_way_is_told(daemon: Daemon, begun: bytes) -> None:
    with Wire(daemon.port) as wire:
        answer = wire.send(begun).end().receive()
        assert answer.status == 400
        assert answer.body == b'{"error":"Request ended before it was complete"}'
        assert wire.rest() == b""


@proves("HTTP-14")
def test_a_client_that_resets_half_way_harms_nobody(daemon: Daemon) -> None:
    for begun in (b"POST /users HTTP/1.1\r\nContent-Length: 99\r\n\r\n{", b"GET /us"):
        with Wire(daemon.port) as wire:
            wire.send(begun)
            linger = (1).to_bytes(4, "little") + (0).to_bytes(4, "little")
            wire.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    assert request(daemon.port, "GET", "/health").status == 200


@proves("HTTP-14")
def test_a_client_that_sends_nothing_gets_nothing(daemon: Daemon) -> None:
    with Wire(daemon.port) as wire:
        assert wire.end().rest() == b""


@proves("HTTP-14")
@pytest.mark.parametrize("pieces", [1, 7, 4096])
@pytest.mark.parametrize(
    "head",
    [
        b"GET /users HTTP/1.1\r\nX-Large: " + b"a" * 70_000,
        b"GET /" + b"a" * 70_000 + b" HTTP/1.1",
        b"GET /users HTTP/1.1\r\nX-Huge: " + b"a" * 3_000_000,
        b"GET /users HTTP/1.1\r\n" + b"".join(b"X-%d: y\r\n" % n for n in range(9000)) + b"Z: z",
    ],
)
def test_headers_above_the_limit_are_refused(daemon: Daemon, head: bytes, pieces: int) -> None:
    data = head + b"\r\nHost: 127.0.0.1\r\n\r\n"
    size = max(1, len(data) // pieces)
    with Wire(daemon.port) as wire:
        for start in range(0, len(data), size):
            wire.send(data[start : start + size])
        answer = wire.receive()
    assert answer.status == 431
    assert answer.json == {"error": "Request headers exceed 65536 bytes"}


@proves("HTTP-14")
def test_large_headers_within_the_limit_are_taken(daemon: Daemon) -> None:
    answer = request(daemon.port, "GET", "/users", headers={"X-Large": "a" * 60_000})
    assert answer.status == 200


@proves("TRUST-05")
def test_a_declared_body_above_the_limit_is_refused_before_it_is_sent(daemon: Daemon) -> None:
    with Wire(daemon.port) as wire:
        wire.send(message("POST", "/exec", headers={"Content-Length": str(MAX_BODY + 1)}))
        answer = wire.receive()
        assert answer.status == 413
        assert answer.body == b'{"error":"Request body exceeds 10485760 bytes"}'


@proves("TRUST-05", "HTTP-12")
def test_a_client_that_sends_the_whole_large_body_sees_the_refusal(user: User) -> None:
    with Wire(user.port) as wire:
        body = b" " * (MAX_BODY + 1)
        wire.send(message("POST", "/exec", body, {"X-User-Id": user.id}))
        assert wire.receive().status == 413
        assert wire.send(message("GET", "/users")).receive().status == 200


@proves("TRUST-05", "HTTP-12")
@pytest.mark.parametrize("chunked", [False, True])
def test_a_client_that_will_close_is_closed_after_the_refusal(
    daemon: Daemon, *, chunked: bool
) -> None:
    size = MAX_BODY + 1
    body = b" " * size
    length = {"Content-Length": str(size)}
    if chunked:
        body, length = b"%x\r\n%b\r\n0\r\n\r\n" % (size, body), {"Transfer-Encoding": "chunked"}
    with Wire(daemon.port) as wire:
        wire.send(message("POST", "/exec", headers={"Connection": "close", **length}) + body)
        answer = wire.receive()
        assert (answer.status, answer.headers["Connection"]) == (413, "close")
        assert wire.rest() == b""


@proves("TRUST-05", "HTTP-16")
def test_a_chunked_body_above_the_limit_is_refused(daemon: Daemon) -> None:
    with Wire(daemon.port) as wire:
        wire.send(message("POST", "/users", headers={"Transfer-Encoding": "chunked"}))
        chunk = b"100000\r\n" + b" " * 0x100000 + b"\r\n"
        for _ in range(11):
            wire.send(chunk)
        assert wire.receive().status == 413
        wire.send(b"0\r\n\r\n")
        assert wire.send(message("GET", "/users")).receive().status == 200


@proves("TRUST-05")
def test_a_body_of_exactly_the_limit_is_read(user: User) -> None:
    cmd = b'{"cmd":"/set {x} = 1","pad":"'
    body = cmd + b"a" * (MAX_BODY - len(cmd) - 2) + b'"}'
    assert len(body) == MAX_BODY
    answer = request(user.port, "POST", "/exec", body, {"X-User-Id": user.id})
    assert answer.events[1][1] == 're: /set {x} = 1\n{x} = "1"'


@proves("HTTP-06")
def test_a_body_of_another_type_is_refused_before_it_is_sent(user: User) -> None:
    headers = {"X-User-Id": user.id, "Content-Type": "text/html", "Content-Length": "9"}
    with Wire(user.port) as wire:
        answer = wire.send(message("POST", "/exec", headers=headers)).receive()
        error = {"error": "Content-Type must be application/json, not text/html"}
        assert (answer.status, answer.json) == (415, error)
        wire.send(b"<p>no</p>" + message("GET", "/users"))
        assert wire.receive().status == 200


@proves("HTTP-06")
def test_an_unknown_user_is_told_that_first(daemon: Daemon) -> None:
    headers = {"X-User-Id": "nobody-here", "Content-Type": "text/html"}
    assert request(daemon.port, "POST", "/exec", b"x", headers).status == 401
    assert request(daemon.port, "POST", "/exec", b"x", {"Content-Type": "text/html"}).status == 400


@proves("HTTP-15")
def test_a_client_that_asks_first_is_told_to_go_on(user: User) -> None:
    body = b'{"cmd":"/info"}'
    headers = {"X-User-Id": user.id, "Expect": "100-continue", "Content-Length": str(len(body))}
    with Wire(user.port) as wire:
        assert wire.send(message("POST", "/exec", headers=headers)).head() == (100, {})
        assert wire.send(body).receive().status == 200


@proves("HTTP-15", "TRUST-05")
def test_a_client_that_asks_first_is_told_not_to_send_too_much(daemon: Daemon) -> None:
    headers = {"Expect": "100-continue", "Content-Length": str(MAX_BODY * 2)}
    with Wire(daemon.port) as wire:
        answer = wire.send(message("POST", "/users", headers=headers)).receive()
        assert answer.status == 413
        assert answer.headers["Connection"] == "close"
        assert wire.rest() == b""


@proves("HTTP-16")
def test_a_chunked_body_is_read(user: User) -> None:
    headers = {"X-User-Id": user.id, "Transfer-Encoding": "chunked"}
    with Wire(user.port) as wire:
        wire.send(message("POST", "/exec", headers=headers))
        for piece in (b'{"cmd"', b':"/set {x}', b' = 1"}'):
            wire.send(b"%x;ext=1\r\n%b\r\n" % (len(piece), piece))
        answer = wire.send(b"0\r\nTrailer: x\r\n\r\n").receive()
    assert answer.events[1][1] == 're: /set {x} = 1\n{x} = "1"'


@proves("HTTP-14")
def test_a_request_may_arrive_byte_by_byte(user: User) -> None:
    with Wire(user.port) as wire:
        wire.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in user.message("/set {x} = 1"):
            wire.send(bytes([byte]))
        assert wire.receive().status == 200


@proves("HTTP-01")
def test_a_whole_url_is_understood(daemon: Daemon) -> None:
    url = f"http://127.0.0.1:{daemon.port}/users?x=1"
    with Wire(daemon.port) as wire:
        assert wire.send(message("GET", url)).receive().status == 200


@proves("HTTP-12")
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_an_offer_of_another_protocol_is_passed_over(user: User, method: str) -> None:
    """Java's and curl's HTTP/2 clients ask this way, and are content with HTTP/1.1."""
    offer = {"Connection": "Upgrade, HTTP2-Settings", "Upgrade": "h2c", "HTTP2-Settings": "AAMA"}
    with Wire(user.port) as wire:
        if method == "GET":
            wire.send(message("GET", "/users", headers=offer))
        else:
            body = b'{"cmd":"/info"}'
            wire.send(message("POST", "/exec", body, {"X-User-Id": user.id, **offer}))
        assert wire.receive().status == 200
        assert wire.send(message("GET", "/nothing")).receive().status == 404


@proves("HTTP-14")
def test_the_ws_path_wants_an_upgrade(daemon: Daemon) -> None:
    assert request(daemon.port, "GET", "/ws").status == 400

"""`POST /exec`: one command in, three events out."""

import json
from pathlib import Path

import pytest

from tests.requirements import proves
from tests.support.daemon import Daemon
from tests.support.http import CORS, Blocked, User, Wire, events, message, request


@proves("SSE-01", "SSE-02", "SSE-03", "SSE-04", "SSE-05", "SSE-08", "SSE-09", "SSE-12")
def test_a_command_is_answered_byte_for_byte(user: User) -> None:
    with Wire(user.port) as wire:
        answer = wire.send(user.message("/set {x} = 1")).receive()
    assert answer.status == 200
    assert answer.headers == {
        "Content-Type": "text/event-stream",
        "Cache-Control": "no-cache",
        "Connection": "keep-alive",
        "X-Accel-Buffering": "no",
        "Content-Length": str(len(answer.body)),
        **CORS,
    }
    assert answer.body.decode() == (
        "event: head\n"
        'data: {"ok":true,"code":null,"cmd":"/set {x} = 1","request_id":null,'
        f'"user_id":"{user.id}","topic":"file:main","topic_type":"file","meta":null}}\n\n'
        "event: content\n"
        'data: "re: /set {x} = 1\\n{x} = \\"1\\""\n\n'
        "event: done\n"
        "data: {}\n\n"
    )


@proves("SSE-01")
@pytest.mark.parametrize("cmd", ["/info", "/exec true"])
def test_the_headers_are_the_same_for_a_client_that_will_close(user: User, cmd: str) -> None:
    body = json.dumps({"cmd": cmd}).encode()
    headers = {"X-User-Id": user.id, "Connection": "close"}
    with Wire(user.port) as wire:
        answer = wire.send(message("POST", "/exec", body, headers)).receive()
        assert answer.headers["Connection"] == "keep-alive"
        assert [name for name, _ in answer.events] == ["head", "content", "done"]
        assert wire.rest() == b""


@proves("SSE-05", "SSE-10", "SSE-11")
def test_a_failed_command_is_answered_in_a_complete_stream(user: User) -> None:
    answer = user.post(cmd="/nonsense and more", topic="file:main")
    assert answer.status == 200
    assert answer.body.decode() == (
        "event: head\n"
        'data: {"ok":false,"code":"COMMAND_UNSUPPORTED","cmd":"/nonsense and more",'
        f'"request_id":null,"user_id":"{user.id}","topic":"file:main","topic_type":"file",'
        '"meta":null}\n\n'
        "event: content\n"
        'data: "re: /nonsense and more\\nERROR(COMMAND_UNSUPPORTED): Unknown command: /nonsense'
        '\\nUse /info to see available commands."\n\n'
        "event: done\n"
        "data: {}\n\n"
    )


@proves("SSE-20")
@pytest.mark.parametrize("cmd", ["info", "/", "/ info"])
def test_a_command_without_its_slash_is_answered_in_band(user: User, cmd: str) -> None:
    head, content = user.exec(cmd)
    assert (head["ok"], head["code"], head["cmd"]) == (False, "COMMAND_UNSUPPORTED", cmd)
    assert content == (
        "ERROR(COMMAND_UNSUPPORTED): Commands must start with /. Use /help for details."
    )


@proves("SSE-07")
def test_a_request_id_is_echoed_in_head_and_content(user: User) -> None:
    answer = user.post(cmd="/set {x} = 1", topic="file:main", request_id=" req-7 ")
    (_, head), (_, content), _ = answer.events
    assert head["request_id"] == "req-7"
    assert content == 're: [req-7] /set {x} = 1\n{x} = "1"'


@proves("SSE-07")
@pytest.mark.parametrize("blank", ["", "  ", None])
def test_a_blank_request_id_counts_as_none(user: User, blank: str | None) -> None:
    answer = user.post(cmd="/set {x} = 1", topic="file:main", request_id=blank)
    (_, head), (_, content), _ = answer.events
    assert head["request_id"] is None
    assert content.startswith("re: /set {x} = 1\n")


@proves("SSE-07", "SSE-10")
def test_a_request_id_cannot_break_the_first_line(user: User) -> None:
    answer = user.post(cmd="/set {x} = 1", topic="file:main", request_id="a\nb")
    (_, head), (_, content), _ = answer.events
    assert head["request_id"] == "a\nb"
    assert content.partition("\n")[2] == '{x} = "1"'


@proves("SSE-06", "SSE-10")
@pytest.mark.parametrize(
    ("cmd", "label"),
    [
        ("  /info  ", "/info"),
        ("/append x\nbody\n", "/append x"),
        ("/" + "x" * 79, "/" + "x" * 79),
        ("/" + "x" * 80, "/" + "x" * 76 + "..."),
        ("/" + "é" * 80, "/" + "é" * 76 + "..."),
        ("/" + "😀" * 40, "/" + "😀" * 38 + "..."),
        ("/xx" + "😀" * 39, "/xx" + "😀" * 37 + "..."),
        ("/x\r\nbody", "/x"),
    ],
)
def test_the_label_is_the_first_line_cut_for_display(user: User, cmd: str, label: str) -> None:
    (_, head), (_, content), _ = user.post(cmd=cmd, topic="file:main").events
    assert head["cmd"] == label
    assert content.partition("\n")[0] == f"re: {label}"


@proves("SSE-08", "TOPIC-03")
@pytest.mark.parametrize(
    ("raw", "canonical", "kind"),
    [(None, "file:main", "file"), ("notes", "file:notes", "file"), (" app:a:b ", "app:a:b", "app")],
)
def test_the_head_names_the_canonical_topic(
    user: User, raw: str | None, canonical: str, kind: str
) -> None:
    (_, head), _, _ = user.post(cmd="/info", topic=raw).events
    assert (head["topic"], head["topic_type"]) == (canonical, kind)


@proves("SSE-13", "SSE-18")
@pytest.mark.parametrize("headers", [{}, {"X-User-Id": ""}, {"X-User-Id": "  "}])
def test_without_a_user_header_the_answer_says_so(daemon: Daemon, headers: dict[str, str]) -> None:
    answer = request(daemon.port, "POST", "/exec", b"not json", headers)
    assert (answer.status, answer.body) == (400, b'{"error":"X-User-Id header required"}')


@proves("SSE-14", "SSE-18", "TRUST-03")
def test_an_unknown_user_is_named_before_the_body_is_read(daemon: Daemon) -> None:
    answer = request(daemon.port, "POST", "/exec", b"not json", {"X-User-Id": "nobody"})
    assert (answer.status, answer.body) == (401, b'{"error":"Unknown user: nobody"}')


@proves("SSE-15", "SSE-18")
@pytest.mark.parametrize(
    "body",
    [b"", b"not json", b'{"cmd":', b"[]", b"null", b'"/info"', b"12", b'{"cmd":"\xff"}', b"[" * 99],
)
def test_a_body_that_is_no_json_object_is_refused(user: User, body: bytes) -> None:
    answer = request(user.port, "POST", "/exec", body, {"X-User-Id": user.id})
    assert answer.status == 400
    assert answer.body.decode() == (
        '{"error":"Invalid JSON body — expected { \\"cmd\\": \\"...\\" }"}'
    )


@proves("SSE-16", "SSE-18")
@pytest.mark.parametrize("cmd", [None, "", " \n\t "])
def test_an_empty_command_is_refused_before_the_topic_is_looked_at(
    user: User, cmd: str | None
) -> None:
    answer = user.post(cmd=cmd, topic="a b")
    assert answer.status == 400
    assert answer.body.decode() == ('{"error":"Empty command — provide non-empty \\"cmd\\" field"}')
    assert request(user.port, "POST", "/exec", {}, {"X-User-Id": user.id}).body == answer.body


@proves("SSE-17")
def test_a_topic_that_does_not_parse_is_quoted(user: User) -> None:
    answer = user.post(cmd="/info", topic="intro.md")
    assert (answer.status, answer.body) == (400, b'{"error":"Invalid topic: intro.md"}')
    assert user.sessions() == {}


@proves("SSE-19")
@pytest.mark.parametrize("value", [1, 1.5, True, False, [], {}, ["/info"], {"a": 1}])
@pytest.mark.parametrize("field", ["cmd", "topic", "request_id", "cwd"])
def test_a_field_of_another_type_is_named(user: User, field: str, value: object) -> None:
    fields: dict[str, object] = {"cmd": "/info", "topic": "file:main", field: value}
    answer = user.post(**fields)
    assert (answer.status, answer.json) == (400, {"error": f"{field} must be a string"})


@proves("SSE-15")
def test_unknown_fields_are_ignored(user: User) -> None:
    assert user.post(cmd="/info", topic="file:main", future={"deep": [1]}).status == 200


@proves("SSE-21", "HTTP-07", "TRUST-04")
@pytest.mark.parametrize("accept", ["application/json", "text/event-stream", "image/png"])
def test_events_are_sent_whatever_is_accepted(user: User, accept: str) -> None:
    body = json.dumps({"cmd": "/info"}).encode()
    head = (
        f"POST /exec HTTP/1.1\r\nHost: localhost\r\nx-user-ID: {user.id}\r\nAccept: {accept}\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    with Wire(user.port) as wire:
        answer = wire.send(head.encode() + body).receive()
    assert answer.headers["Content-Type"] == "text/event-stream"
    assert [name for name, _ in answer.events] == ["head", "content", "done"]


@proves("SSE-22", "SSE-03")
def test_text_outside_ascii_is_sent_as_it_is(user: User) -> None:
    answer = user.post(cmd='/set {x} = "żółw 🐢\u2028"')
    assert "żółw 🐢\u2028".encode() in answer.body
    assert b"\\u" not in answer.body


@proves("SSE-23", "TRUST-06")
def test_the_headers_leave_before_the_command_finishes(user: User) -> None:
    with Blocked(user) as blocked:
        assert blocked.status == 200
        assert blocked.headers["Content-Type"] == "text/event-stream"
        assert blocked.headers["Connection"] == "keep-alive"
        (_, head), (_, content), (_, done) = blocked.finish()
    assert head["ok"] is True
    assert content.endswith("\n---\nreleased")
    assert done == {}


@proves("TRUST-06")
def test_the_shell_of_exec_is_bash(user: User) -> None:
    head, content = user.exec("/exec [[ -n $BASH_VERSION ]] && echo bash {1..3}")
    assert head["ok"] is True
    assert content.endswith("---\nbash 1 2 3")


@proves("SSE-05", "SSE-11")
def test_the_exit_code_of_a_shell_command_is_the_code(user: User) -> None:
    head, content = user.exec("/exec echo out; exit 3")
    assert head["code"] == "EXIT_3"
    assert content.startswith("ERROR(EXIT_3): exit: 3")
    assert content.endswith("out")


@proves("SSE-25")
@pytest.mark.parametrize("cwd", ["relative", "/no/such/directory", "/etc/passwd", "/x\0y"])
def test_a_working_directory_must_be_one(user: User, cwd: str) -> None:
    answer = user.post(cmd="/info", cwd=cwd)
    assert answer.status == 400
    assert answer.json == {"error": "cwd must be an absolute path to a directory"}


@proves("SSE-25")
def test_files_under_the_working_directory_are_reachable(user: User, tmp_path: Path) -> None:
    (tmp_path / "there.md").write_text("# There\n", encoding="utf-8")
    inside = user.post(cmd="/ls .", topic="file:a", cwd=str(tmp_path)).events
    assert "there.md" in inside[1][1]
    outside = user.post(cmd=f"/ls {tmp_path}", topic="file:b").events
    assert outside[0][1]["code"] == "FILE_NOT_ALLOWED"
    assert f"stringd allow {tmp_path}" in outside[1][1]


@proves("SSE-02", "HTTP-12")
def test_one_connection_runs_many_commands_in_order(user: User) -> None:
    with Wire(user.port) as wire:
        for number in range(20):
            answer = wire.send(user.message(f"/set {{n}} = {number}")).receive()
            assert events(answer.body)[1][1].endswith(f'{{n}} = "{number}"')

"""Reading the three events, and their absence."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stringd.client.exec import execute, json_object, parse_events, strip_prefix
from stringd.client.http import DaemonConnection
from stringd.client.values import ExecResult
from stringd.wire.exec import exec_events
from stringd.wire.result import Result, response_text
from stringd.wire.topic import parse_topic
from tests.client.test_http import peer
from tests.requirements import proves
from tests.support.daemon import Daemon
from tests.support.http import User

HEAD = b'event: head\ndata: {"ok":true,"code":null,"meta":null}\n\n'
CONTENT = b'event: content\ndata: "re: /x\\nhi"\n\n'
DONE = b"event: done\ndata: {}\n\n"


def _answer(status: str, body: bytes) -> bytes:
    head = f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


@proves("CLIENT-03", "CLIENT-07", "CLIENT-08")
@given(
    st.booleans(),
    st.text(),
    st.one_of(st.none(), st.text()),
    st.one_of(st.none(), st.sampled_from(["NOT_FOUND", "EXIT_1"])),
)
def test_what_the_daemon_writes_is_read_back(
    ok: bool, message: str, content: str | None, code: str | None
) -> None:
    result = Result(ok, message, content, None if ok else code)
    body = exec_events(
        user_id="u",
        topic=parse_topic("main"),
        label="/x",
        request_id="r",
        result=result,
        meta=None,
    )
    reply = parse_events(body)
    assert (reply.ok, reply.code) == (ok, result.code)
    assert reply.content == response_text(result)


@proves("CLIENT-04")
@pytest.mark.parametrize(
    "body", [b"", HEAD, HEAD + CONTENT, CONTENT + DONE, HEAD + DONE, HEAD + b"event: content\n"]
)
def test_a_stream_without_all_events_is_incomplete(body: bytes) -> None:
    reply = parse_events(body)
    assert (reply.ok, reply.code) == (False, "STREAM_INCOMPLETE")


@proves("CLIENT-04")
@given(st.binary(max_size=80), st.integers(0, len(HEAD + CONTENT + DONE)))
def test_no_stream_breaks_the_reader(noise: bytes, cut: int) -> None:
    parse_events(noise)
    parse_events((HEAD + CONTENT + DONE)[:cut] + noise)


@proves("CLIENT-05")
@pytest.mark.parametrize(
    ("status", "body", "code", "content"),
    [
        ("429 X", b'{"error":"QUEUE_FULL","message":"full"}', "QUEUE_FULL", "full"),
        ("504 X", b'{"error":"QUEUE_TIMEOUT","message":"late"}', "QUEUE_TIMEOUT", "late"),
        ("401 X", b'{"error":"Unknown user: x"}', "HTTP_ERROR", "Unknown user: x"),
        ("500 X", b'{"message":"odd"}', "HTTP_ERROR", "odd"),
        ("502 X", b"<html>", "HTTP_ERROR", "<html>"),
        ("400 X", b"[1]", "HTTP_ERROR", "[1]"),
    ],
)
def test_refusals_are_told_apart(status: str, body: bytes, code: str, content: str) -> None:
    with peer(_answer(status, body)) as (port, _), DaemonConnection(port) as connection:
        reply = execute(connection, "u", "file:main", "/x")
    assert (reply.ok, reply.code, reply.content) == (False, code, content)


@proves("CLIENT-01", "CLIENT-06")
def test_a_request_names_its_user_and_accepts_events() -> None:
    whole = _answer("200 OK", HEAD + CONTENT + DONE)
    with peer(whole) as (port, heard), DaemonConnection(port) as connection:
        reply = execute(connection, "me", "file:main", "/x \u2028", "/work")
    assert reply.content == "hi"
    (message,) = heard
    head, _, body = message.partition(b"\r\n\r\n")
    assert b"\r\nX-User-Id: me\r\n" in head + b"\r\n"
    assert b"\r\nAccept: text/event-stream\r\n" in head + b"\r\n"
    assert json.loads(body) == {"cmd": "/x \u2028", "topic": "file:main", "cwd": "/work"}


@proves("CLIENT-03")
def test_a_command_runs_in_the_daemon(daemon: Daemon, tmp_path: Path) -> None:
    User(daemon.port, "client", tmp_path)
    with DaemonConnection(daemon.port) as connection:
        reply = execute(connection, "client", "file:main", '/set {x} = "1"')
    assert (reply.ok, reply.code, reply.content) == (True, None, '{x} = "1"')


@given(st.dictionaries(st.text(), st.text(st.characters(exclude_categories=["Cs"]))))
def test_objects_are_written_as_json(fields: dict[str, str]) -> None:
    assert json.loads(json_object(**fields)) == fields


@pytest.mark.parametrize(
    ("content", "stripped"),
    [("re: /x\nhi\nho", "hi\nho"), ("re: /x", ""), ("hi\nho", "hi\nho"), ("", "")],
)
def test_only_the_first_line_is_stripped(content: str, stripped: str) -> None:
    assert strip_prefix(content) == stripped


def test_a_notebook_shows_the_page_or_what_went_wrong() -> None:
    assert ExecResult(True, None, "# Page\n")._repr_markdown_() == "# Page\n"
    failed = ExecResult(False, "NOT_FOUND", "ERROR: ```x```")
    assert failed._repr_markdown_() == "````text\nERROR: ```x```\n````"

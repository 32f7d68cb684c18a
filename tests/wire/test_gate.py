import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stringd.wire.gate import (
    Blob,
    Request,
    RequestAction,
    Response,
    ResponseError,
    Stage,
    Status,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
    socket_path,
)
from stringd.wire.jsonlines import JsonError
from tests.requirements import proves

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
requests = st.builds(
    Request,
    pipeline=st.lists(st.lists(text, max_size=3).map(tuple), max_size=3).map(tuple),
    id=st.none() | text,
    host=text,
    session=text,
    time=text,
    env=st.dictionaries(text, text, max_size=3),
    reason=text,
    privileged=st.booleans(),
    forward_agent=st.booleans(),
    version=text,
    action=st.sampled_from(RequestAction),
)
stages = st.builds(
    Stage,
    exit_code=st.integers(-1, 255),
    stderr=st.binary(max_size=20).map(Blob),
    stderr_truncated=st.booleans(),
    signal=st.none() | st.integers(1, 64),
    stderr_open=st.booleans(),
)
responses = st.builds(
    Response,
    id=text,
    status=st.sampled_from(Status),
    stages=st.lists(stages, max_size=3).map(tuple),
    stdout=st.none() | st.binary(max_size=40).map(Blob),
    stdout_truncated=st.booleans(),
    message=st.none() | text,
    version=text,
    stdout_open=st.booleans(),
    duration_ms=st.none() | st.integers(0),
    decided_by=st.none() | text,
    decision_note=st.none() | text,
)


@given(requests)
def test_a_request_survives_the_wire(request_: Request) -> None:
    line = encode_request(request_)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert decode_request(line[:-1]) == request_


@given(responses)
def test_a_response_survives_the_wire(response: Response) -> None:
    line = b"".join(encode_response(response))
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert line.isascii()
    assert decode_response(line) == response


@proves("GATE-REQ-01", "GATE-REQ-02")
def test_a_bare_request_has_the_stated_defaults() -> None:
    request_ = decode_request(b'{"pipeline":[["ls"]]}')
    assert request_ == Request(pipeline=(("ls",),))
    assert request_.privileged is True
    assert (request_.id, request_.session, request_.time, request_.env) == (None, "", "", {})
    assert decode_request(b"{}").pipeline == ()


@proves("GATE-REQ-03")
def test_unknown_fields_are_ignored_even_twice() -> None:
    assert decode_request(b'{"x":1,"x":{"y":[]},"pipeline":[]}') == Request()


@pytest.mark.parametrize(
    "members",
    [
        '"id":null',
        '"id":7',
        '"host":[]',
        '"session":{}',
        '"time":1',
        '"pipeline":null',
        '"pipeline":"ls"',
        '"pipeline":["ls"]',
        '"pipeline":[["ls",1]]',
        '"pipeline":[{"a":"b"}]',
        '"pipeline":{"a":["b"]}',
        '"env":[]',
        '"env":{"A":1}',
        '"env":{"A":"1","A":"2"}',
        '"reason":true',
        '"privileged":1',
        '"privileged":"true"',
        '"privileged":null',
        '"forward_agent":0',
        '"version":1.0',
        '"action":"reboot"',
        '"action":null',
        '"pipeline":[["ls"]],"pipeline":[["rm"]]',
        '"id":"1","id":"1"',
    ],
)
@proves("GATE-REQ-04")
def test_wrong_types_and_duplicates_are_refused(members: str) -> None:
    with pytest.raises(JsonError):
        decode_request(f"{{{members}}}".encode())


@pytest.mark.parametrize("line", [b"[]", b'"ls"', b"null", b"7", b'["7","h"]'])
@proves("GATE-REQ-04")
def test_the_top_level_must_be_an_object(line: bytes) -> None:
    with pytest.raises(JsonError):
        decode_request(line)


@proves("GATE-RES-01", "GATE-RES-03")
def test_a_response_is_written_in_the_order_of_the_protocol() -> None:
    response = Response(
        "7",
        Status.OK,
        stages=(Stage(0), Stage(0)),
        stdout=Blob(b"3\n"),
        version="1.0.0",
    )
    assert b"".join(encode_response(response)) == (
        b'{"id":"7","status":"ok","stages":[{"exit_code":0,"stderr":""},'
        b'{"exit_code":0,"stderr":""}],"stdout":"Mwo=","version":"1.0.0"}\n'
    )


@proves("GATE-RES-02")
def test_a_denial_is_bare() -> None:
    assert b"".join(encode_response(Response("7", Status.DENIED))) == (
        b'{"id":"7","status":"denied"}\n'
    )


@pytest.mark.parametrize(
    "reply",
    [
        {"status": "ok", "stdout": None, "stages": []},
        {"status": "ok", "stages": [{"exit_code": 0, "stderr": "", "new": 1}], "new": {}},
        {"status": "error", "message": "no"},
    ],
)
def test_responses_of_other_gates_are_understood(reply: dict[str, Any]) -> None:
    assert decode_response(json.dumps(reply).encode()).status == reply["status"]


@pytest.mark.parametrize(
    "line", [b"", b"[]", b"{", b'{"status":"maybe"}', b'{"status":"ok","stages":{}}', b"\xff"]
)
def test_what_is_no_response_is_refused(line: bytes) -> None:
    with pytest.raises(ResponseError):
        decode_response(line)


def test_output_that_is_no_base64_is_refused_when_it_is_read() -> None:
    response = decode_response(b'{"status":"ok","stdout":"A"}')
    assert response.stdout is not None
    with pytest.raises(ResponseError):
        bytes(response.stdout)


@pytest.mark.parametrize(
    "extra", ["", '"new":{"stdout":"eA=="},', '"message":"\\"stdout\\":\\"x",']
)
def test_a_large_output_is_read_whatever_stands_around_it(extra: str) -> None:
    data = bytes(range(256)) * 1000
    line = (
        f'{{"id":"7",{extra}"status":"ok","stdout":"{base64.b64encode(data).decode()}"}}'.encode()
    )
    response = decode_response(line)
    assert response.stdout is not None
    assert bytes(response.stdout) == data


def test_a_large_output_with_escaped_slashes_is_read() -> None:
    data = b"\xff" * 100_000
    text = base64.b64encode(data).decode().replace("/", "\\/")
    response = decode_response(f'{{"status":"ok","stdout":"{text}"}}'.encode())
    assert response.stdout is not None
    assert bytes(response.stdout) == data


def test_a_nested_large_stdout_is_not_taken_for_the_real_one() -> None:
    inner = base64.b64encode(b"x" * 100_000).decode()
    response = decode_response(f'{{"status":"ok","new":{{"stdout":"{inner}"}}}}'.encode())
    assert response.stdout is None


@pytest.mark.parametrize(
    ("env", "directories", "expected"),
    [
        ({"STRINGD_GATE_SOCKET": "/s"}, {"/x"}, "/s"),
        ({"XDG_RUNTIME_DIR": "/x"}, {"/x", "/run/user/7"}, "/x/stringd-gate.sock"),
        ({"XDG_RUNTIME_DIR": "/gone"}, {"/run/user/7"}, "/run/user/7/stringd-gate.sock"),
        ({}, {"/run/user/7"}, "/run/user/7/stringd-gate.sock"),
        ({}, set[str](), "/data/gate.sock"),
    ],
)
def test_the_socket_is_where_everyone_looks_for_it(
    env: dict[str, str], directories: set[str], expected: str
) -> None:
    assert socket_path(env, 7, "/data", directories.__contains__) == expected

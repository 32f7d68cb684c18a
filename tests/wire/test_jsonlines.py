import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stringd.wire.jsonlines import FramingError, JsonError, LineReader, Members, parse, unique
from tests.requirements import proves

LIMIT = 16


@given(st.binary(max_size=40), st.integers(1, 7))
@proves("GATE-FRAME-02", "GATE-FRAME-03")
def test_a_line_is_found_however_the_bytes_are_cut(data: bytes, size: int) -> None:
    def read(pieces: list[bytes]) -> bytes | str | None:
        reader = LineReader(LIMIT)
        try:
            for piece in pieces:
                if (line := reader.feed(piece)) is not None:
                    return line
            reader.end()
        except FramingError as error:
            return str(error)
        return None

    pieces = [data[at : at + size] for at in range(0, len(data), size)]
    end = data.find(b"\n", 0, LIMIT)
    expected: bytes | str | None
    if end >= 0:
        expected = data[:end]
    elif len(data) > LIMIT:
        expected = "request exceeds maximum size"
    else:
        expected = "request missing trailing newline" if data else None
    assert read(pieces) == expected
    assert read([data] if data else []) == expected


@proves("GATE-FRAME-02")
def test_the_newline_may_be_the_last_byte_of_the_limit() -> None:
    assert LineReader(LIMIT).feed(b"x" * 15 + b"\n") == b"x" * 15
    with pytest.raises(FramingError, match="exceeds maximum size"):
        LineReader(LIMIT).feed(b"x" * 16 + b"\n")


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"{",
        b"{} {}",
        b"{}x",
        b'{"a":NaN}',
        b'{"a":Infinity}',
        b'{"a":-Infinity}',
        b'{"a":"\\ud800"}',
        b'{"a":"\\udc00\\ud800"}',
        b'{"unknown":["\\ud800"]}',
        b'{"a":"\xff"}',
        b'{"a":"\x01"}',
        b"[" * 129 + b"]" * 129,
        b'{"a":' * 200 + b"1" + b"}" * 200,
        b"[" * 100_000,
        "\ufeff{}".encode(),
    ],
)
@proves("GATE-REQ-04")
def test_what_a_lenient_parser_would_let_pass_is_refused(line: bytes) -> None:
    with pytest.raises(JsonError):
        parse(line)


@pytest.mark.parametrize(
    "line",
    [
        b"[" * 128 + b"]" * 128,
        b"[" + b"[]," * 500 + b"[]]",
        b'{"a":"' + b"[" * 1000 + b'"}',
        b'{"a":"\\"' + b"{" * 1000 + b'"}',
        b'{"a":"\\ud83d\\ude00"}\r',
        b'{"a":1e999,"b":' + b"9" * 5000 + b"}",
    ],
)
def test_odd_but_proper_json_is_read(line: bytes) -> None:
    parse(line)


json_values = st.recursive(
    st.none() | st.booleans() | st.text(), lambda inner: st.lists(inner), max_leaves=20
)


@given(json_values)
def test_values_without_objects_are_read_as_the_standard_library_does(value: object) -> None:
    try:
        line = json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return
    assert parse(line) == value


def test_duplicate_members_are_kept_for_whoever_must_refuse_them() -> None:
    members = parse(b'{"a":"1","a":"2","x":"3","x":"4"}')
    assert isinstance(members, Members)
    with pytest.raises(JsonError, match='duplicate field "a"'):
        unique(members, frozenset({"a"}))
    assert unique(members, frozenset()) == {}

"""Reading JSON request bodies."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stringd.wire.body import BodyError, ExecBody, JsonObject, parse_exec_body, parse_object

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.binary(max_size=60))
def test_any_bytes_are_an_object_or_none(body: bytes) -> None:
    assert isinstance(parse_object(body), JsonObject | None)


@given(st.dictionaries(st.sampled_from(["cmd", "topic", "request_id", "cwd", "x"]), JSON))
def test_a_body_is_read_or_its_wrong_field_is_named(fields: dict[str, object]) -> None:
    wrong = [
        name
        for name in ("cmd", "topic", "request_id", "cwd")
        if not isinstance(fields.get(name), str | None)
    ]
    body = msgspec.json.encode(fields)
    if wrong:
        with pytest.raises(BodyError, match=f"^{wrong[0]} must be a string$"):
            parse_exec_body(body)
    else:
        known = {name: fields.get(name) for name in ExecBody.__struct_fields__}
        assert parse_exec_body(body) == msgspec.convert(known, ExecBody)


def test_texts_are_trimmed_and_the_first_filled_name_wins() -> None:
    held = JsonObject({"id": "  ", "user_id": " u ", "n": None})
    assert held.text("id", "user_id") == "u"
    assert held.text("n") is None
    assert held.text("missing") is None
    assert held.raw_text("id") == "  "


def test_lists_hold_only_strings() -> None:
    assert JsonObject({"a": ["x", "y"]}).texts("a") == ["x", "y"]
    assert JsonObject({}).texts("a") is None
    for wrong in ("x", [1], {"x": 1}):
        with pytest.raises(BodyError, match=r"^a must be an array of strings$"):
            JsonObject({"a": wrong}).texts("a")


def test_half_a_character_is_read_as_a_replacement() -> None:
    body = rb'{"cmd":"/open \ud83dx","topic":"a"}'
    taken = parse_exec_body(body)
    assert taken is not None
    assert (taken.cmd, taken.topic) == ("/open \ufffdx", "a")
    fields = parse_object(body)
    assert fields is not None
    assert fields.text("cmd") == "/open \ufffdx"
    assert parse_object(rb'{"cmd":"\ud83d') is None
    with pytest.raises(BodyError, match="topic"):
        parse_exec_body(rb'{"cmd":"\ud83d","topic":5}')

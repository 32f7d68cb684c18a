"""Requests: every value escaped for where it lands."""

import json
from collections.abc import Mapping
from urllib.parse import parse_qsl, unquote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stringd.actions.errors import ActionError
from stringd.actions.http_text import HttpCall, RequestComposer, with_query
from stringd.actions.place import ActionContext, ListValue, Value
from tests.actions.support import Files, action, inputs, place
from tests.requirements import proves

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)


def compose(text: str, values: Mapping[str, Value], at: ActionContext | None = None) -> HttpCall:
    composer = RequestComposer(action(text), inputs(values, at))
    url, shown = composer.address()
    return composer.request(url, shown, composer.headers())


@proves("ACT-19")
@given(texts, texts)
def test_values_stay_inside_their_part_of_the_address(segment: str, value: str) -> None:
    template = "GET http://h.test:1/a/{s}/b?q={v}&r={v}|x"
    if segment in (".", ".."):
        with pytest.raises(ActionError, match="may not be"):
            compose(template, {"s": segment, "v": value})
        return
    parts = urlsplit(compose(template, {"s": segment, "v": value}).url)
    assert parts.netloc == "h.test:1"
    first, second, third = parts.path.split("/")[1:]
    assert (first, unquote(second), third) == ("a", segment, "b")
    assert dict(parse_qsl(parts.query, keep_blank_values=True)) == {"q": value, "r": f"{value}|x"}


@given(st.dictionaries(st.text(st.characters(codec="utf-8"), min_size=1), texts))
def test_leftover_values_read_back_as_they_were(values: dict[str, str]) -> None:
    url = with_query("http://h.test/p?kept=%l:+%C#frag", dict(values))
    query = dict(parse_qsl(urlsplit(url).query, keep_blank_values=True))
    assert {k: v for k, v in query.items() if k in values} == values
    assert url.startswith("http://h.test/p?")
    assert url.endswith("#frag")


@proves("ACT-19")
@given(texts)
def test_a_value_inside_a_json_string_stays_one_string(value: str) -> None:
    template = """POST http://h.test/ -d '{"a":"{v}","b":"Hi {v}!","c":[{"d":"{v}"}],"n":{v}}'"""
    body = compose(template, {"v": value}).body
    assert body is not None
    read = json.loads(body)
    assert (read["a"], read["b"], read["c"]) == (value, f"Hi {value}!", [{"d": value}])
    assert set(read) == {"a", "b", "c", "n"}


@given(texts)
def test_a_string_quoted_inside_a_json_string_is_not_left(value: str) -> None:
    template = """POST http://h.test/ -d '{"query":"{ user(id: \\\\"{v}\\\\") }"}'"""
    template = template.replace("\\\\", "\\")
    body = compose(template, {"v": value}).body
    assert body is not None
    inner = json.loads(body)["query"]
    quoted = inner.removeprefix("{ user(id: ").removesuffix(") }")
    assert json.loads(quoted) == value


def test_json_goes_in_where_a_value_is_expected() -> None:
    template = 'POST http://h.test/ -d \'{"n":{n},"f":{f}}\''
    assert compose(template, {"n": "5", "f": '{"x":[1]}'}).body == b'{"n":5,"f":{"x":[1]}}'
    assert compose(template, {"n": "x", "f": '1,"admin":1'}).body == (
        b'{"n":"x","f":"1,\\"admin\\":1"}'
    )


def test_form_bodies_are_percent_encoded() -> None:
    template = (
        'POST http://h.test/ -H "Content-Type: application/x-www-form-urlencoded" -d "a={a}&b=1"'
    )
    call = compose(template, {"a": "x&b=2 y"})
    assert call.body == b"a=x%26b%3D2%20y&b=1"
    assert call.headers["Content-Type"] == "application/x-www-form-urlencoded"


def test_modifiers_read_and_encode() -> None:
    at = place(files=Files({"d.txt": b'say "hi"\n', "i.png": b"\x89P"}))
    template = (
        "POST http://h.test/ -d "
        '\'{"c":"{draft|file}","i":"{img|base64file}","t":"{txt|base64}","u":"{txt|upper}"}\''
    )
    body = compose(template, {"draft": "d.txt", "img": "i.png", "txt": "é"}, at).body
    assert body is not None
    assert json.loads(body) == {
        "c": 'say "hi"\n',
        "i": "iVA=",
        "t": "w6k=",
        "u": "{txt|upper}",
    }
    with pytest.raises(ActionError, match=r"cannot read nope: No such file"):
        compose(template, {"draft": "nope", "img": "i.png", "txt": "x"}, at)


@proves("ACT-19")
def test_headers_take_fields_and_variables_but_no_line_breaks() -> None:
    at = place(stored={"KEY": "k1"}, variables={"who": "Ann"})
    text = 'GET http://h.test/ -H "Authorization: Bearer $KEY" -H "X-A: {who}/{f}" -H "accept: a/b"'
    call = compose(text, {"f": "v"}, at)
    assert call.headers == {"Authorization": "Bearer k1", "X-A": "Ann/v", "accept": "a/b"}
    assert call.url == "http://h.test/"
    with pytest.raises(ActionError, match="line break"):
        compose(text, {"f": "v\r\nX-Evil: 1"}, at)


def test_stored_values_are_masked_in_what_is_shown() -> None:
    at = place(stored={"K": "abcdef", "BASE": "http://h.test:8/v1"})
    call = compose("GET $BASE/x?key=$K&q={q}", {"q": "$K"}, at)
    assert call.url == "http://h.test:8/v1/x?key=abcdef&q=%24K"
    assert call.shown_url == "http://h.test:8/v1/x?key=abc…&q=%24K"


def test_missing_variables_are_listed_with_the_way_to_set_them() -> None:
    text = 'GET http://h.test/?a=$ONE&$filter=x -H "X: $TWO"'
    with pytest.raises(ActionError) as failure:
        compose(text, {}, place(in_app=True))
    assert failure.value.message == (
        "Unresolved environment variable(s):\n  $ONE, $TWO\n\n"
        'Set them from this app session:\n  /set $ONE = "..."\n  /set $TWO = "..."'
    )
    with pytest.raises(ActionError) as failure:
        compose("GET http://h.test/?a=$ONE", {})
    assert failure.value.message.endswith(
        "Persistent env vars are app-scoped. Open an app session first:\n"
        "  string app:<name> '/set $ONE = \"...\"'"
    )


def test_relative_addresses_belong_to_the_document() -> None:
    at = ActionContext("/act.x", "http://h.test/docs/page.md", place().directory)
    assert compose("GET ./api?x=1", {}, at).url == "http://h.test/docs/api?x=1"
    with pytest.raises(ActionError, match="can only topic HTTP endpoints"):
        compose("GET ./api", {})


@proves("ACT-47")
def test_lists_and_json_are_json_in_a_body_and_text_elsewhere() -> None:
    fields = "\n  tags: list\n  data: json\n  rows: lines\n"
    given: dict[str, Value] = {
        "tags": ListValue(("a", 'b"c')),
        "data": '{"k": [1]}',
        "rows": ListValue(("x", "y"), "\n"),
    }
    left = compose(f"POST http://h.test/{fields}", given).body
    assert json.loads(left or b"") == {
        "tags": ["a", 'b"c'],
        "data": {"k": [1]},
        "rows": ["x", "y"],
    }
    template = """POST http://h.test/ -d '{"t": {tags}, "s": "{tags}", "d": {data}, "n": {rows}}'"""
    written = compose(f"{template}{fields}", given).body
    assert json.loads(written or b"") == {
        "t": ["a", 'b"c'],
        "s": 'a,b"c',
        "d": {"k": [1]},
        "n": ["x", "y"],
    }
    assert compose(f"GET http://h.test/?t={{tags}}{fields}", {"tags": given["tags"]}).url == (
        "http://h.test/?t=a%2Cb%22c"
    )

"""The command label and the three events."""

import json

from hypothesis import given
from hypothesis import strategies as st

from stringd.wire.exec import LABEL_UNITS, Meta, command_label, exec_events
from stringd.wire.result import Result
from stringd.wire.topic import parse_topic


def units(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def events(result: Result, **fields: str | None) -> dict[str, object]:
    told = {"label": "/info", "request_id": None, **fields}
    body = exec_events(
        user_id="default",
        topic=parse_topic("app:a:b"),
        label=told["label"] or "",
        request_id=told["request_id"],
        result=result,
        meta=None,
    )
    blocks = body.decode().removesuffix("\n\n").split("\n\n")
    pairs = [block.split("\ndata: ") for block in blocks]
    assert [name for name, _ in pairs] == ["event: head", "event: content", "event: done"]
    return {name.removeprefix("event: "): json.loads(data) for name, data in pairs}


@given(st.text(max_size=200))
def test_a_label_is_short_and_one_line_and_begins_like_the_command(cmd: str) -> None:
    label = command_label(cmd)
    first = cmd.strip().partition("\n")[0].rstrip()
    assert "\n" not in label
    assert units(label) <= LABEL_UNITS
    if units(first) <= LABEL_UNITS:
        assert label == first
    else:
        assert label.endswith("...")
        assert first.startswith(label.removesuffix("..."))
        # One less only when the cut would have split a pair.
        assert units(label) in (LABEL_UNITS - 1, LABEL_UNITS)


@given(st.text(), st.text(), st.one_of(st.none(), st.text()))
def test_any_text_survives_the_wire(message: str, content: str, request_id: str | None) -> None:
    found = events(Result.page(message, content), request_id=request_id)
    text = str(found["content"])
    assert text.startswith("re: ")
    body = f"{message}\n---\n{content}" if message else content
    assert text.partition("\n")[2] == body


def test_lone_surrogates_of_file_names_do_not_break_the_stream() -> None:
    found = events(Result.page("a", "odd \udcff name"), label="/open \udcff")
    assert found["content"] == "re: /open �\na\n---\nodd � name"


def test_the_head_of_a_failure_without_a_code_has_none() -> None:
    found = events(Result.error(None, "odd"))
    assert found["content"] == "re: /info\nERROR(UNKNOWN): odd"
    head = found["head"]
    assert isinstance(head, dict)
    assert (head["ok"], head["code"]) == (False, None)


def test_meta_begins_with_the_three_keys_of_the_protocol() -> None:
    body = exec_events(
        user_id="u",
        topic=parse_topic("main"),
        label="/open x",
        request_id=None,
        result=Result.done("ok"),
        meta=Meta("file:///x", "X", "#part"),
    )
    head = json.loads(body.split(b"\n")[1].removeprefix(b"data: "))
    assert list(head["meta"].items())[:3] == [
        ("uri", "file:///x"),
        ("title", "X"),
        ("current_block", "#part"),
    ]

"""Halves of characters are joined where they meet, and replaced where they do not."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stringd.formats.surrogates import HalfJoiner, paired, without_lone_escapes

SMILE = "\U0001f600"


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("plain é", "plain é"),
        ("\ud83d\ude00", SMILE),
        ("a\ud83db", "a\ufffdb"),
        ("\ude00\ud83d", "\ufffd\ufffd"),
        ("\ud83d\ud83d\ude00", f"\ufffd{SMILE}"),
    ],
)
def test_text_is_made_whole(text: str, whole: str) -> None:
    assert paired(text) == whole


@given(st.text(alphabet=st.sampled_from(["a", SMILE, "\ud83d", "\ude00", "\\"])), st.data())
def test_it_does_not_matter_where_text_is_cut(text: str, data: st.DataObject) -> None:
    joiner, shown = HalfJoiner(), ""
    while text:
        size = data.draw(st.integers(1, len(text)))
        piece, text = text[:size], text[size:]
        shown += joiner.feed(piece)
        shown.encode()
    shown += joiner.rest()
    shown.encode()


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        (rb'"hi \ud83dx"', "hi \ufffdx"),
        (rb'"\uD83D\uDE00"', SMILE),
        (rb'"\ude00"', "\ufffd"),
        (rb'"\ud83d\ud83d\ude00"', f"\ufffd{SMILE}"),
        (rb'"\\ud83d"', r"\ud83d"),
        (rb'"\\\ud83d"', "\\\ufffd"),
        (rb'"\ud83d\n"', "\ufffd\n"),
    ],
)
def test_json_without_lone_escapes_is_json(raw: bytes, value: str) -> None:
    assert json.loads(without_lone_escapes(raw)) == value

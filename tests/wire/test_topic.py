"""Names of topics."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stringd.wire.topic import TOPIC_TYPES, InvalidTopicError, parse_topic

SEGMENTS = st.text("abcXYZ019_-", min_size=1, max_size=8)


@pytest.mark.parametrize(
    ("raw", "canonical"),
    [
        (None, "file:main"),
        ("", "file:main"),
        (" \t", "file:main"),
        ("notes", "file:notes"),
        ("file", "file:file"),
        (" bash:dev\n", "bash:dev"),
        ("app:weather:korea", "app:weather:korea"),
        ("file:a:b", "file:a:b"),
    ],
)
def test_a_topic_is_made_canonical(raw: str | None, canonical: str) -> None:
    assert str(parse_topic(raw)) == canonical


@pytest.mark.parametrize(
    "raw", ["a b", "intro.md", "foo:bar", "file:", ":main", "app:a::b", "app:a:", "FILE:x", "ä"]
)
def test_what_is_no_topic_is_quoted_in_the_error(raw: str) -> None:
    with pytest.raises(InvalidTopicError, match=f"^Invalid topic: {raw}$"):
        parse_topic(f"  {raw} ")


@given(st.sampled_from(TOPIC_TYPES), st.lists(SEGMENTS, min_size=1, max_size=3))
def test_a_canonical_topic_reads_as_itself(kind: str, names: list[str]) -> None:
    raw = ":".join([kind, *names])
    topic = parse_topic(raw)
    assert (topic.canonical, topic.type, topic.name) == (raw, kind, ":".join(names))
    assert parse_topic(topic.canonical).canonical == raw


@given(st.text(max_size=30))
def test_any_text_is_a_topic_of_safe_characters_or_an_error(raw: str) -> None:
    try:
        topic = parse_topic(raw)
    except InvalidTopicError:
        return
    assert topic.canonical.isascii()
    assert not set(topic.canonical) & set("/.\\ \n\0")

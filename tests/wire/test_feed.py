"""The feed on the wire: ids, kinds, events as they are written."""

import pytest

from stringd.wire.feed import (
    KINDS,
    FeedPosition,
    FeedQueryError,
    TopicDone,
    decode_event,
    encode_event,
    parse_kinds,
    parse_position,
)


def test_an_event_is_written_with_its_id_and_its_kind_as_name() -> None:
    done = TopicDone(
        user="u", topic="file:a", command="/open x", client="c", ok=True, code=None, ms=1.5
    )
    written = encode_event(FeedPosition("b00t", 7), done)
    head, data = written.decode().split("data: ", 1)
    assert head == "id: b00t-7\nevent: topic.done\n"
    assert decode_event(data) == done
    assert '"kind":"topic.done"' in data
    assert '"id":"b00t-7"' in data


def test_a_line_break_in_a_command_cannot_end_an_event() -> None:
    done = TopicDone(
        user="u", topic="t", command="a\n\nevent: x", client="", ok=True, code=None, ms=0
    )
    assert encode_event(FeedPosition("b", 1), done).count(b"\n\n") == 1


@pytest.mark.parametrize("text", ["", "7", "-7", "boot-", "boot-x", "boot--", "b-" + "9" * 40])
def test_what_is_not_an_id_is_refused(text: str) -> None:
    with pytest.raises(FeedQueryError):
        parse_position(text)


def test_ids_are_read_as_they_are_written() -> None:
    position = FeedPosition("ab-c", 12)
    assert parse_position(str(position)) == position


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("", set(KINDS)),
        ("topic.done", {"topic.done"}),
        ("gate.*", {"gate.asked", "gate.decided", "gate.ended"}),
        ("gate, daemon.health", {"gate.asked", "gate.decided", "gate.ended", "daemon.health"}),
    ],
)
def test_kinds_are_named_alone_or_by_their_group(text: str, kinds: set[str]) -> None:
    assert parse_kinds(text) == kinds


@pytest.mark.parametrize("text", ["topics", "gate.ask", "*", "run.state,nothing"])
def test_an_unknown_kind_is_refused_by_name(text: str) -> None:
    with pytest.raises(FeedQueryError, match="is not a kind of event"):
        parse_kinds(text)

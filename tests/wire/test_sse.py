"""Server-sent events are read whole, however they arrive."""

import random

import pytest

from stringd.wire.sse import SseReader, read_events

STREAM = (
    "event: head\ndata: {}\n\n: a remark\n\ndata: one\ndata:two\n\nevent: x\ndata: é\n\n".encode()
)
EVENTS = [("head", "{}"), ("message", "one\ntwo"), ("x", "é")]


@pytest.mark.parametrize("ending", [b"\n", b"\r\n"])
def test_events_are_the_same_in_one_piece_and_in_any_pieces(ending: bytes) -> None:
    stream = STREAM.replace(b"\n", ending)
    assert read_events(stream) == EVENTS
    for seed in range(50):
        pick = random.Random(seed)
        reader, found, at = SseReader(), [], 0
        while at < len(stream):
            size = pick.choice((1, 1, 2, 3, 7))
            found += reader.feed(stream[at : at + size])
            at += size
        assert found == EVENTS, seed


def test_an_event_that_is_not_complete_is_not_told() -> None:
    for cut in range(len(STREAM)):
        assert read_events(STREAM[:cut]) == EVENTS[: len(read_events(STREAM[:cut]))]
    assert read_events(STREAM[:-1]) == EVENTS[:2]


def test_bytes_that_are_not_utf_8_and_lines_that_are_not_fields_do_no_harm() -> None:
    assert read_events(b"data: \xff\n\nnonsense\n\nevent: lonely\n\n\n\n") == [("message", "�")]

"""The ring: positions, batches, readers that are slow."""

import asyncio

import pytest

from stringd.server.feed.ring import BATCH_EVENTS, Feed
from stringd.wire.feed import KINDS, FeedPosition, TopicClosed, TopicCreated, decode_event
from stringd.wire.sse import read_events

ALL = frozenset(KINDS)


def numbered(feed: Feed, count: int) -> None:
    for number in range(count):
        feed.publish(TopicCreated(user="u", topic=f"file:{number}"))


def topics(data: bytes) -> list[str]:
    found = [decode_event(text) for _, text in read_events(data)]
    return [event.topic for event in found if isinstance(event, TopicCreated)]


def test_a_reader_gets_what_came_after_its_position_in_order() -> None:
    feed = Feed()
    numbered(feed, 3)
    assert topics(feed.read(1, ALL).data) == ["file:1", "file:2"]


def test_a_reader_without_a_position_gets_only_what_comes() -> None:
    feed = Feed()
    numbered(feed, 3)
    number, first = feed.start(None)
    assert (first, feed.read(number, ALL).data) == (b"", b"")


def test_a_reader_behind_the_ring_is_told_how_much_it_missed() -> None:
    feed = Feed(size=4)
    numbered(feed, 10)
    name, data = read_events(feed.read(1, ALL).data)[0]
    missed = decode_event(data)
    assert (name, getattr(missed, "count", None)) == ("feed.missed", 5)
    assert topics(feed.read(1, ALL).data) == ["file:6", "file:7", "file:8", "file:9"]


def test_a_position_of_an_earlier_daemon_gives_everything_kept_and_says_why() -> None:
    feed = Feed()
    numbered(feed, 2)
    number, first = feed.start(FeedPosition("earlier", 7))
    [(name, data)] = read_events(first)
    assert (name, getattr(decode_event(data), "why", None)) == ("feed.missed", "restarted")
    assert topics(feed.read(number, ALL).data) == ["file:0", "file:1"]


def test_a_position_ahead_of_the_feed_waits_for_what_comes() -> None:
    feed = Feed()
    numbered(feed, 2)
    assert feed.start(FeedPosition(feed.boot, 99)) == (2, b"")


def test_batches_are_bounded_and_lose_nothing() -> None:
    feed = Feed()
    numbered(feed, BATCH_EVENTS * 2 + 5)
    number = 0
    seen: list[str] = []
    while number < feed.number:
        batch = feed.read(number, ALL)
        assert len(topics(batch.data)) <= BATCH_EVENTS
        number = batch.number
        seen += topics(batch.data)
    assert seen == [f"file:{each}" for each in range(BATCH_EVENTS * 2 + 5)]


def test_other_kinds_are_left_out_but_counted() -> None:
    feed = Feed()
    numbered(feed, 2)
    feed.publish(TopicClosed(user="u", topic="file:0"))
    batch = feed.read(0, frozenset({"topic.closed"}))
    assert [name for name, _ in read_events(batch.data)] == ["topic.closed"]
    assert batch.number == 3


@pytest.mark.anyio
async def test_publishing_wakes_everybody_who_waits() -> None:
    feed = Feed()
    waiting = [feed.more(), feed.more()]
    feed.publish(TopicClosed(user="u", topic="file:0"))
    await asyncio.wait_for(asyncio.gather(*waiting), 60)


def test_whoever_looks_only_while_somebody_reads_hears_of_the_first_and_the_last() -> None:
    feed = Feed()
    heard: list[bool] = []
    feed.listened = heard.append
    feed.enter()
    feed.enter()
    feed.leave()
    feed.leave()
    assert heard == [True, False]


@pytest.mark.anyio
async def test_a_wait_that_was_given_up_is_not_woken() -> None:
    feed = Feed()
    given_up, waits = feed.more(), feed.more()
    feed.give_up(given_up)
    feed.publish(TopicClosed(user="u", topic="file:a"))
    assert waits.done()
    assert not given_up.done()

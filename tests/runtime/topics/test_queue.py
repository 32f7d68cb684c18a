"""Turns of a topic, against a simple model."""

import asyncio
from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stringd.runtime.errors import (
    CallerLeftError,
    QueueFullError,
    QueueTimeoutError,
    TopicClosedError,
)
from stringd.runtime.topics.queue import MAX_WAITING, TopicQueue

pytestmark = pytest.mark.anyio


async def test_the_first_runs_and_the_next_wait_in_order() -> None:
    queue = TopicQueue()
    assert queue.enter() is None
    first, second = queue.enter(), queue.enter()
    assert first is not None
    assert second is not None
    assert (queue.busy, queue.length) == (True, 2)
    queue.leave()
    assert (first.done(), second.done()) == (True, False)
    queue.leave()
    assert second.done()
    queue.leave()
    assert (queue.busy, queue.length) == (False, 0)


async def test_sixteen_may_wait() -> None:
    queue = TopicQueue()
    for _ in range(1 + MAX_WAITING):
        queue.enter()
    with pytest.raises(QueueFullError):
        queue.enter()
    queue.leave()
    assert queue.enter() is not None


async def test_a_turn_given_up_at_the_last_moment_passes_on() -> None:
    queue = TopicQueue()
    queue.enter()
    first, second = queue.enter(), queue.enter()
    assert first is not None
    assert second is not None
    queue.leave()
    queue.abandon(first)
    assert second.done()


async def test_a_turn_is_taken_at_once_or_awaited() -> None:
    queue = TopicQueue()
    assert queue.take_turn(60) is None
    turn = queue.take_turn(60)
    assert turn is not None
    queue.leave()
    await turn
    assert (queue.busy, queue.length) == (True, 0)


async def test_who_waits_too_long_or_leaves_gives_the_place_up() -> None:
    queue = TopicQueue()
    queue.take_turn(60)
    late = queue.take_turn(0)
    assert late is not None
    with pytest.raises(QueueTimeoutError):
        await late
    gone = asyncio.get_running_loop().create_future()
    gone.set_result(None)
    left = queue.take_turn(60, lambda: gone)
    assert left is not None
    with pytest.raises(CallerLeftError):
        await left
    assert (queue.busy, queue.length) == (True, 0)


async def test_what_waits_is_dropped_without_a_turn() -> None:
    queue = TopicQueue()
    queue.take_turn(60)
    turns = [queue.take_turn(60, command=text) for text in ("one", "two")]
    gone = asyncio.get_running_loop().create_future()
    gone.set_result(None)
    left = queue.take_turn(60, lambda: gone, command="three")
    assert queue.drop() == ["one", "two", "three"]
    for turn in turns:
        assert turn is not None
        with pytest.raises(TopicClosedError):
            await turn
    assert left is not None
    with pytest.raises(CallerLeftError):
        await left
    assert (queue.busy, queue.length) == (True, 0)
    queue.leave()
    assert not queue.busy


@given(st.lists(st.sampled_from(["enter", "leave", "abandon first", "abandon last"]), max_size=60))
async def test_one_runs_at_a_time_whatever_happens(steps: list[str]) -> None:
    queue = TopicQueue()
    running = False
    waiting = deque[asyncio.Future[bool]]()
    for step in steps:
        if step == "enter":
            if len(waiting) == MAX_WAITING:
                with pytest.raises(QueueFullError):
                    queue.enter()
                continue
            place = queue.enter()
            assert (place is None) is (not running)
            running = True
            if place is not None:
                waiting.append(place)
        elif step == "leave" and running:
            queue.leave()
            running = bool(waiting)
            if waiting:
                assert waiting.popleft().done()
        elif step.startswith("abandon") and waiting:
            queue.abandon(waiting.popleft() if step.endswith("first") else waiting.pop())
        assert (queue.busy, queue.length) == (running, len(waiting))
        assert not any(place.done() for place in waiting)

"""Rounds of writing to those who follow runs."""

import asyncio

import pytest

from stringd.server.deliveries import FEW, Deliveries

pytestmark = pytest.mark.anyio


async def test_everybody_added_is_called_once_in_their_order() -> None:
    called: list[int] = []
    deliveries, done = Deliveries(asyncio.get_running_loop()), asyncio.Event()
    for number in range(FEW * 10):
        deliveries.add(lambda number=number: called.append(number))  # type: ignore[misc]
    deliveries.add(done.set)
    await asyncio.wait_for(done.wait(), 30)
    assert called == list(range(FEW * 10))


async def test_what_is_added_while_a_round_rests_is_called_when_it_has_rested() -> None:
    called: list[str] = []
    deliveries, first = Deliveries(asyncio.get_running_loop()), asyncio.Event()
    for _ in range(FEW * 10):
        deliveries.add(lambda: called.append("first"))
    deliveries.add(first.set)
    await asyncio.wait_for(first.wait(), 30)
    second = asyncio.Event()
    for _ in range(FEW * 10):
        deliveries.add(lambda: called.append("second"))
    deliveries.add(second.set)
    await asyncio.wait_for(second.wait(), 30)
    assert called == ["first"] * FEW * 10 + ["second"] * FEW * 10


async def test_a_few_are_called_without_a_timer() -> None:
    """Each of them in the second turn of the loop, however short the last round is ago."""
    deliveries, called = Deliveries(asyncio.get_running_loop()), []
    for turn in range(5):
        for _ in range(FEW):
            deliveries.add(lambda turn=turn: called.append(turn))  # type: ignore[misc]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert called == [turn for turn in range(5) for _ in range(FEW)]

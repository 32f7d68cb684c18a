"""Answers of one turn leave together, in order, and nothing overtakes them."""

import asyncio
from typing import cast

import pytest

from stringd.server.http.outbox import Outbox

pytestmark = pytest.mark.anyio


class Recorder:
    """A transport that remembers what was written, and to whom, in one shared list."""

    def __init__(self, name: str, written: list[tuple[str, bytes]]) -> None:
        self.name = name
        self.written = written
        self.closing = False

    def write(self, data: bytes) -> None:
        self.written.append((self.name, data))

    def is_closing(self) -> bool:
        return self.closing

    def transport(self) -> asyncio.Transport:
        return cast("asyncio.Transport", self)


async def test_answers_are_written_at_the_end_of_the_turn_in_their_order() -> None:
    written: list[tuple[str, bytes]] = []
    outbox = Outbox(asyncio.get_running_loop())
    one, two = Recorder("one", written), Recorder("two", written)
    outbox.put(one.transport(), b"first")
    outbox.put(two.transport(), b"second")
    assert written == []
    await asyncio.sleep(0)
    assert written == [("one", b"first"), ("two", b"second")]


async def test_a_flush_sends_at_once_and_only_once() -> None:
    written: list[tuple[str, bytes]] = []
    outbox = Outbox(asyncio.get_running_loop())
    outbox.put(Recorder("one", written).transport(), b"answer")
    outbox.flush()
    await asyncio.sleep(0)
    assert written == [("one", b"answer")]


async def test_whoever_left_gets_nothing() -> None:
    written: list[tuple[str, bytes]] = []
    outbox = Outbox(asyncio.get_running_loop())
    gone = Recorder("gone", written)
    outbox.put(gone.transport(), b"answer")
    gone.closing = True
    await asyncio.sleep(0)
    assert written == []

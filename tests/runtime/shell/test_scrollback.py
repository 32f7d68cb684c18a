"""What a terminal showed: bounded, numbered, joined."""

import asyncio

import pytest

from stringd.runtime.shell.scrollback import EVENT_CHARACTERS, Scrollback
from stringd.wire.terminal import Cleared, Missed, Printed, TerminalBegan, TerminalEnded

pytestmark = pytest.mark.anyio


async def test_neighbouring_text_is_joined_and_a_reader_continues_where_it_was() -> None:
    kept = Scrollback()
    kept.began("make", "/srv", "string")
    kept.printed(b"one ")
    kept.printed(b"two")
    began, printed = kept.read().events
    assert isinstance(began, TerminalBegan)
    assert (began.number, began.text, began.directory, began.by) == (1, "make", "/srv", "string")
    assert printed == Printed(text="one two")
    position = kept.number
    kept.ended(2, "/srv")
    (ended,) = kept.read(position).events
    assert isinstance(ended, TerminalEnded)
    assert (ended.number, ended.status) == (1, 2)
    assert kept.read(kept.number).events == []


async def test_the_oldest_goes_and_a_reader_is_told() -> None:
    kept = Scrollback(limit=3 * (EVENT_CHARACTERS + 4))
    for number in range(5):
        kept.printed(b"%d..." % number)
    assert kept.read().events == [Missed(), Printed(text="2...3...4...")]
    assert kept.read(2).events == [Printed(text="2...3...4...")]
    assert kept.read(4).events == [Printed(text="4...")]


async def test_the_command_that_runs_is_known_however_much_it_prints() -> None:
    kept = Scrollback(limit=300)
    kept.began("yes", "/", "")
    for _ in range(100):
        kept.printed(b"y\n" * 20)
    missed, began, again, printed = kept.read().events
    assert (missed, again) == (Missed(), Missed())
    assert isinstance(began, TerminalBegan)
    assert isinstance(printed, Printed)
    assert TerminalBegan not in map(type, kept.read(1).events)
    kept.ended(130, "/")
    assert TerminalBegan not in map(type, kept.read().events)


async def test_one_piece_larger_than_everything_is_cut_to_its_end() -> None:
    kept = Scrollback(limit=10)
    kept.printed(b"x" * 100 + b"the end")
    assert kept.read().events == [Printed(text="xxxthe end")]


async def test_characters_may_be_cut_anywhere() -> None:
    kept = Scrollback()
    for byte in "größe €".encode():
        kept.printed(bytes([byte]))
    assert kept.read().events == [Printed(text="größe €")]


async def test_what_is_cleared_is_gone() -> None:
    kept = Scrollback()
    kept.printed(b"secret")
    position = kept.number
    kept.clear()
    assert kept.read().events == [Missed(), Cleared()]
    assert kept.read(position).events == [Cleared()]


async def test_a_reader_that_waits_is_woken_by_the_next_event() -> None:
    kept = Scrollback()
    waiting = kept.more()
    assert not waiting.done()
    kept.printed(b"x")
    await asyncio.wait_for(waiting, 30)

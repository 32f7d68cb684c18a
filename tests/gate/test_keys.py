import pytest

from stringd.gate.keys import BURST_SECONDS, KeyFilter
from tests.requirements import proves

LATER = 1.0


@proves("GATE-ASK-04")
def test_a_key_before_the_arming_moment_is_dropped() -> None:
    keys = KeyFilter(armed_at=1.0)
    keys.feed(b"y", 0.99)
    assert keys.take(5.0) is None
    assert keys.due() is None


def test_a_lone_key_counts_once_it_has_stayed_alone() -> None:
    keys = KeyFilter(armed_at=0.0)
    keys.feed(b"y", LATER)
    assert keys.take(LATER + BURST_SECONDS / 2) is None
    assert keys.due() == LATER + BURST_SECONDS
    assert keys.take(LATER + BURST_SECONDS) == ord("y")
    assert keys.take(LATER + 1) is None


@proves("GATE-ASK-04")
def test_two_keys_in_one_read_are_a_burst() -> None:
    keys = KeyFilter(armed_at=0.0)
    keys.feed(b"yy", LATER)
    assert not keys.burst_ended(LATER)
    assert keys.due() == LATER + BURST_SECONDS
    assert keys.take(LATER + 1) is None
    assert keys.burst_ended(LATER + 1)
    assert not keys.burst_ended(LATER + 1)


@proves("GATE-ASK-04")
def test_two_keys_close_together_are_a_burst_and_so_is_what_follows_at_once() -> None:
    keys = KeyFilter(armed_at=0.0)
    for moment in (0.0, 0.02, 0.04, 0.06):
        keys.feed(b"y", LATER + moment)
    assert keys.take(LATER + 1) is None
    keys.feed(b"y", LATER + 2)
    assert keys.take(LATER + 3) == ord("y")


@pytest.mark.parametrize("key", ["\x1b[A", "\x1bOP", "é", "語"])
def test_a_key_that_sends_several_bytes_is_one_key(key: str) -> None:
    keys = KeyFilter(armed_at=0.0)
    keys.feed(key.encode(), LATER)
    assert keys.take(LATER + 1) == key.encode()[0]
    assert not keys.burst_ended(LATER + 1)


def test_an_arrow_key_that_arrives_in_pieces_is_still_an_escape() -> None:
    keys = KeyFilter(armed_at=0.0)
    keys.feed(b"\x1b", LATER)
    keys.feed(b"[A", LATER + BURST_SECONDS / 2)
    assert keys.take(LATER + 1) == 0x1B


@proves("GATE-ASK-04")
@pytest.mark.parametrize("moment", [BURST_SECONDS / 2, BURST_SECONDS, 5.0])
def test_a_key_never_replaces_one_that_nobody_has_looked_at(moment: float) -> None:
    keys = KeyFilter(armed_at=0.0)
    keys.feed(b"x", LATER)
    keys.feed(b"y", LATER + moment)
    assert keys.take(LATER + 10) is None
    assert keys.burst_ended(LATER + 10)

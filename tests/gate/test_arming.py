"""Which keys decide, with a clock that is only a number."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stringd.gate.arming import ARMING_SECONDS, SETTLE_SECONDS, Arming, Dropped
from stringd.gate.keys import Key
from tests.requirements import proves

QUIET = ARMING_SECONDS
MOMENT = 0.001


def at_a_question(now: float = 0.0) -> Arming:
    arming = Arming()
    arming.shown(now)
    return arming


def press(arming: Arming, data: bytes, now: float) -> Key | None:
    """A key at this time, and what counted once it had stayed alone."""
    arming.feed(data, now)
    return arming.take(now + SETTLE_SECONDS)


@proves("GATE-ASK-04")
def test_a_key_counts_after_the_silence_and_not_before() -> None:
    assert press(at_a_question(), b"y", QUIET - MOMENT) is None
    assert press(at_a_question(), b"y", QUIET) is Key.YES


@proves("GATE-ASK-04")
def test_every_dropped_key_starts_the_silence_again() -> None:
    arming = at_a_question()
    for number in range(1, 20):
        assert press(arming, b"x", number * (QUIET - MOMENT)) is None
    assert press(arming, b"y", 19 * (QUIET - MOMENT) + QUIET) is Key.YES


@proves("GATE-ASK-04")
@given(
    st.floats(0.2, 1.0),
    st.floats(0.02, 0.2),
    st.floats(-1.0, 2.0),
)
def test_a_key_held_down_never_approves(delay: float, interval: float, pressed: float) -> None:
    """However the keyboard repeats, and whether it was pressed before the question or at the last.

    The first press may count if it came after the silence; none of its repetitions does, also not
    at the questions that follow.
    """
    arming = Arming()
    shown = 0.0
    if pressed < shown:
        arming.typed_ahead(b"y", shown)
    arming.shown(shown)
    times = [pressed, *(pressed + delay + interval * number for number in range(200))]
    approvals = []
    for now in times:
        if now >= shown and press(arming, b"y", now) is Key.YES:
            approvals.append(now)
            shown = now + SETTLE_SECONDS
            arming.shown(shown)
    assert approvals in ([], [pressed])
    assert pressed not in approvals or pressed >= QUIET


@proves("GATE-ASK-04")
@given(st.text(alphabet="abcdefg yxyz ", min_size=5, max_size=60), st.floats(0.05, 0.35))
def test_prose_typed_into_a_question_decides_nothing(prose: str, interval: float) -> None:
    arming = at_a_question()
    deciding = {Key.YES, Key.NO, Key.NOTE, Key.DENY_CALLER}
    for number, letter in enumerate(prose):
        assert press(arming, letter.encode(), interval * number) not in deciding


@proves("GATE-ASK-04")
def test_several_keys_at_once_are_dropped_and_named() -> None:
    arming = at_a_question()
    assert press(arming, b"yy", 1.0) is None
    assert arming.take_dropped(1.0 + SETTLE_SECONDS) is Dropped.SEVERAL
    assert arming.take_dropped(2.0) is None
    arming.feed(b"y", 5.0)
    arming.feed(b"y", 5.0 + SETTLE_SECONDS / 2)
    assert arming.take(9.0) is None


@proves("GATE-ASK-04")
@pytest.mark.parametrize("pasted", [b"y", b"yes\n", b"n"])
def test_a_paste_decides_nothing_and_starts_the_silence_again(pasted: bytes) -> None:
    arming = at_a_question()
    assert press(arming, b"\x1b[200~" + pasted + b"\x1b[201~", 5.0) is None
    assert press(arming, b"y", 5.0 + QUIET - MOMENT) is None
    assert press(arming, b"y", 9.0) is Key.YES


@proves("GATE-ASK-10")
def test_after_a_question_left_by_itself_the_next_one_is_armed_later() -> None:
    arming = at_a_question()
    arming.changed(10.0)
    arming.shown(10.001)
    assert press(arming, b"y", 11.9) is None
    assert press(arming, b"y", 13.5) is Key.YES


def test_a_yes_at_one_question_and_a_yes_at_the_next_a_while_later_both_count() -> None:
    arming = at_a_question()
    assert press(arming, b"y", 1.0) is Key.YES
    arming.shown(1.05)
    assert press(arming, b"y", 2.2) is Key.YES


def test_a_held_key_is_named_as_one() -> None:
    arming = at_a_question()
    press(arming, b"y", 1.0)
    arming.shown(1.02)
    assert press(arming, b"y", 1.6) is None
    assert arming.take_dropped(2.0) is Dropped.HELD


@proves("GATE-GRANT-02")
def test_a_g_held_down_is_one_press() -> None:
    arming = at_a_question()
    assert press(arming, b"g", 1.0) is Key.GRANT
    arming.shown(1.02)
    # From the first repetition to the last, however slow the keyboard is.
    for moment in (1.9, 2.3, 2.7, 3.1, 3.5):
        assert press(arming, b"g", moment) is None
    assert press(arming, b"g", 5.0) is Key.GRANT


def test_denials_need_the_silence_too_but_may_follow_each_other() -> None:
    arming = at_a_question()
    assert press(arming, b"q", 0.1) is None
    assert press(arming, b"q", 1.0) is Key.NO
    arming.shown(1.02)
    assert press(arming, b"q", 1.5) is Key.NO


def test_moving_needs_no_silence_and_starts_it_again() -> None:
    arming = at_a_question()
    for moment in (0.1, 0.2, 0.3):
        assert press(arming, b" ", moment) is Key.NEXT
    assert press(arming, b"y", 0.3 + QUIET - MOMENT) is None
    arming = at_a_question()
    assert press(arming, b"\x1b[6~\x1b[6~", 1.0) is Key.NEXT
    assert arming.take(1.1) is Key.NEXT


def test_a_lone_escape_denies_after_a_moment() -> None:
    arming = at_a_question()
    arming.feed(b"\x1b", 1.0)
    assert arming.take(1.01) is None
    due = arming.due()
    assert due is not None
    arming.take(due)
    assert arming.take(due + SETTLE_SECONDS) is Key.NO


@proves("GATE-ASK-12")
def test_a_key_pressed_before_the_question_was_drawn_again_does_not_count() -> None:
    arming = at_a_question()
    arming.feed(b"y", 1.0)
    arming.shown(1.001)
    assert arming.take(2.0) is None

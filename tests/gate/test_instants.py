from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stringd.gate.instants import SECOND, age_seconds, format_instant, lead_seconds, parse_instant
from tests.requirements import proves

CLOCK = int(datetime(2026, 2, 13, 14, 30, 10, tzinfo=UTC).timestamp()) * SECOND


@pytest.mark.parametrize(
    ("text", "age"),
    [
        ("2026-02-13T14:30:00Z", 10),
        ("2026-02-13T14:30:00", 10),
        ("2026-02-13T14:29:10Z", 60),
        ("2026-02-13T14:29:09Z", 61),
        ("2026-02-13T14:30:00.500Z", 9),
        ("2026-02-13T14:30:05+00:00", 5),
        ("2026-02-13T16:30:05+02:00", 5),
        ("2026-02-13T12:30:05-0200", 5),
        ("2026-02-13T14:29:60Z", 10),
    ],
)
@proves("GATE-TIME-01")
def test_iso_instants_are_read_exactly(text: str, age: int) -> None:
    instant = parse_instant(text)
    assert instant is not None
    assert age_seconds(instant, CLOCK) == age


@pytest.mark.parametrize(
    "text",
    [
        "2026-02-13 14:30:00Z",
        "2026-02-13T14:30Z",
        "1969-12-31T23:59:59Z",
        "2026-00-13T14:30:00Z",
        "2026-13-13T14:30:00Z",
        "2026-02-00T14:30:00Z",
        "2026-02-32T14:30:00Z",
        "2026-02-30T14:30:00Z",
        "2026-02-13T24:30:00Z",
        "2026-02-13T14:60:00Z",
        "2026-02-13T14:30:61Z",
        "2026-\x1b[8m-02-13T14:30:00Z",
        " 2026-02-13T14:30:00Z",
        "2026-02-13T14:30:00Z ",
        "2026-02-13T14:30:00ZZ",
        "2026-02-13T14:30:00Z\n",
        "2026-02-13T14:30:00+24:00",
        "2026-02-13T14:30:00+02:60",
        "٢٠٢٦-02-13T14:30:00Z",
        "tomorrow",
        "",
    ],
)
@proves("GATE-TIME-01")
def test_anything_else_is_malformed(text: str) -> None:
    assert parse_instant(text) is None


@given(st.integers(min_value=0, max_value=4_000_000_000))
def test_instants_agree_with_the_calendar(seconds: int) -> None:
    text = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    assert parse_instant(text) == seconds * SECOND


@given(st.integers(), st.integers())
def test_age_and_lead_are_total_and_never_both_positive(instant: int, now: int) -> None:
    age, lead = age_seconds(instant, now), lead_seconds(instant, now)
    assert age >= 0
    assert lead >= 0
    assert age == 0 or lead == 0


@given(st.integers(), st.integers(), st.integers(min_value=0))
def test_age_grows_with_the_clock(instant: int, now: int, later: int) -> None:
    assert age_seconds(instant, now + later) >= age_seconds(instant, now)
    assert lead_seconds(instant, now + later) <= lead_seconds(instant, now)


def test_a_started_second_ahead_counts_whole() -> None:
    assert lead_seconds(CLOCK + 5 * SECOND, CLOCK) == 5
    assert lead_seconds(CLOCK + 5 * SECOND + 1, CLOCK) == 6


@given(st.integers(min_value=0, max_value=4_000_000_000_000))
def test_what_is_formatted_can_be_read(milliseconds: int) -> None:
    assert parse_instant(format_instant(milliseconds * 1_000_000)) == milliseconds * 1_000_000

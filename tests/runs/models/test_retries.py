"""When a provider is asked again."""

from datetime import UTC, datetime

import pytest

from stringd.runs.models.retries import pause, retry_after, tries_again, worth_retrying

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0.0),
        ("1.5", 1.5),
        ("-3", 0.0),
        ("99999", 99999.0),
        ("inf", None),
        ("nan", None),
        ("Thu, 01 Jan 2026 00:00:07 -0000", 7.0),
        ("Thu, 01 Jan 2026 01:00:07 +0100", 7.0),
        ("Thu, 99 Foo 2026", None),
        ("Thu, 01 Jan 2026 00:00:07 GMT", 7.0),
        ("Wed, 31 Dec 2025 00:00:00 GMT", 0.0),
        ("", None),
        ("soon", None),
    ],
)
def test_retry_after_is_seconds_or_a_date(text: str, seconds: float | None) -> None:
    assert retry_after({"Retry-After": text}, NOW) == seconds


def test_milliseconds_are_more_exact() -> None:
    assert retry_after({"retry-after-ms": "250", "retry-after": "1"}, NOW) == 0.25
    assert retry_after({"retry-after-ms": "soon", "retry-after": "1"}, NOW) == 1.0


@pytest.mark.parametrize("attempt", range(12))
def test_without_it_the_wait_doubles_up_to_a_limit(attempt: int) -> None:
    longest = min(0.5 * 2**attempt, 30.0)
    assert longest / 2 <= pause(attempt, None) <= longest


@pytest.mark.parametrize(
    ("status", "again"), [(None, True), (429, True), (503, True), (401, False), (400, False)]
)
def test_only_what_may_pass_is_tried_again(status: int | None, again: bool) -> None:
    assert worth_retrying(status) is again


@pytest.mark.parametrize(
    ("wanted", "again"),
    [(0, 0), (3, 3), (2.9, 2), (-1, 0), (1e9, 20), (float("inf"), 20), (float("nan"), 2)],
)
def test_any_number_of_retries_is_made_a_sensible_one(wanted: float, again: int) -> None:
    assert tries_again(wanted) == again

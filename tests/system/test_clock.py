"""Time as the wire and the files write it."""

import re
from datetime import UTC, datetime

from stringd.system.clock import timestamp


def test_a_moment_is_written_in_utc_with_milliseconds() -> None:
    assert timestamp(0) == "1970-01-01T00:00:00.000Z"
    assert timestamp(1700000000.1239) == "2023-11-14T22:13:20.123Z"


def test_now_is_between_before_and_after() -> None:
    before = timestamp(datetime.now(UTC).timestamp())
    now = timestamp()
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", now)
    assert before <= now <= timestamp(datetime.now(UTC).timestamp() + 1)

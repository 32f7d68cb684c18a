"""Freshness: a strict ISO 8601 instant, and how far it is from now. The clock is an argument."""

import re
from datetime import date
from typing import Final

SECOND: Final = 1_000_000_000  # instants are whole nanoseconds since 1970, so arithmetic is exact

_INSTANT: Final = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{2}):([0-9]{2}):([0-9]{2})"
    r"(?:\.([0-9]{1,9}))?"
    r"(?:Z|([+-])([0-9]{2})(?::?([0-9]{2}))?)?"
)
_EPOCH: Final = date(1970, 1, 1).toordinal()


def parse_instant(text: str) -> int | None:
    """Nanoseconds since 1970 of `YYYY-MM-DDTHH:MM:SS[.fff][Z|±HH:MM]`; None if it is anything else.

    Without an offset it is UTC; second 60 counts as the first of the next minute.
    """
    match = _INSTANT.fullmatch(text)
    if match is None:
        return None
    year, month, day, hour, minute, second = map(int, match.groups()[:6])
    if year < 1970 or hour > 23 or minute > 59 or second > 60:
        return None
    try:
        days = date(year, month, day).toordinal() - _EPOCH
    except ValueError:
        return None
    offset = _offset_minutes(match[8], match[9], match[10])
    if offset is None:
        return None
    seconds = days * 86_400 + hour * 3600 + (minute - offset) * 60 + second
    return seconds * SECOND + int((match[7] or "0").ljust(9, "0"))


def _offset_minutes(sign: str | None, hours: str | None, minutes: str | None) -> int | None:
    if sign is None or hours is None:
        return 0
    h, m = int(hours), int(minutes or "0")
    if h > 23 or m > 59:
        return None
    return (h * 60 + m) * (-1 if sign == "-" else 1)


def age_seconds(instant: int, now: int) -> int:
    """Whole seconds from `instant` to `now`; zero for an instant ahead of the clock."""
    return max(0, (now - instant) // SECOND)


def lead_seconds(instant: int, now: int) -> int:
    """Seconds by which `instant` is ahead of `now`, a started second counting whole."""
    return max(0, -((now - instant) // SECOND))


def format_instant(now: int) -> str:
    """The instant to the millisecond, in UTC."""
    days, rest = divmod(now // 1_000_000, 86_400_000)
    day = date.fromordinal(_EPOCH + days).isoformat()
    seconds, millis = divmod(rest, 1000)
    return f"{day}T{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{millis:03}Z"

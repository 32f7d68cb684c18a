"""When and how long to wait before a provider is asked again. Pure: facts in, seconds out."""

from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from math import isfinite, isnan
from random import random
from typing import Final

DEFAULT_RETRIES: Final = 2
_STATUSES: Final = frozenset((408, 409, 425, 429, 500, 502, 503, 504, 529))
_MOST_RETRIES: Final = 20.0
_FIRST_SECONDS: Final = 0.5
_LONGEST_SECONDS: Final = 30.0
# A provider that wants more patience than this is down, and the run should say so.
PATIENCE_SECONDS: Final = 300.0


def worth_retrying(status: int | None) -> bool:
    """Whether a failure may pass by itself; None is a connection that could not be made."""
    return status is None or status in _STATUSES


def tries_again(wanted: float) -> int:
    """How often to ask again, when a strategy wants it so often."""
    return DEFAULT_RETRIES if isnan(wanted) else int(min(max(wanted, 0.0), _MOST_RETRIES))


def pause(attempt: int, headers: Mapping[str, str] | None, now: datetime | None = None) -> float:
    """Seconds to wait after the given failed attempt, counted from 0."""
    asked = retry_after(headers or {}, now or datetime.now(UTC))
    if asked is not None:
        return asked
    longest: float = min(_FIRST_SECONDS * 2.0**attempt, _LONGEST_SECONDS)
    # Half of it by chance, so that many agents do not come back at the same moment.
    return longest * (0.5 + random() / 2)  # noqa: S311


def retry_after(headers: Mapping[str, str], now: datetime) -> float | None:
    """What `Retry-After` asks for, as seconds or as a date; None when it says nothing usable."""
    named = {name.lower(): text.strip() for name, text in headers.items()}
    # More exact where both are sent.
    milliseconds = _number(named.get("retry-after-ms", ""))
    if milliseconds is not None:
        return max(milliseconds / 1000, 0.0)
    text = named.get("retry-after", "")
    seconds = _number(text)
    if seconds is None:
        try:
            seconds = (_zoned(parsedate_to_datetime(text)) - now).total_seconds()
        except (ValueError, TypeError, OverflowError):
            return None
    return max(seconds, 0.0)


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if isfinite(number) else None


def _zoned(moment: datetime) -> datetime:
    """A date whose zone is not told is in UTC, as HTTP wants it."""
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)

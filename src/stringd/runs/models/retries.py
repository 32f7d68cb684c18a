"""When and how long to wait before a provider is asked again. Pure: facts in, seconds out."""

from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from random import random
from typing import Final

DEFAULT_RETRIES: Final = 2
_STATUSES: Final = frozenset((408, 409, 425, 429, 500, 502, 503, 504, 529))
_FIRST_SECONDS: Final = 0.5
_LONGEST_SECONDS: Final = 30.0
# A provider that wants more patience than this is down, and the run should say so.
_LONGEST_ASKED: Final = 300.0


def worth_retrying(status: int | None) -> bool:
    """Whether a failure may pass by itself; None is a connection that could not be made."""
    return status is None or status in _STATUSES


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
    text = headers.get("retry-after", "").strip()
    try:
        seconds = float(text)
    except ValueError:
        try:
            seconds = (parsedate_to_datetime(text) - now).total_seconds()
        except (ValueError, TypeError):
            return None
    return min(max(seconds, 0.0), _LONGEST_ASKED)

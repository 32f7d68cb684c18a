"""Time as the wire and the files write it."""

import time
from datetime import UTC, datetime
from functools import lru_cache


def timestamp(seconds: float | None = None) -> str:
    """A moment, by default now, in UTC, with milliseconds and a `Z`.

    `seconds` count from the epoch, as file times do.
    """
    if seconds is not None:
        moment = datetime.fromtimestamp(seconds, UTC)
        return moment.isoformat(timespec="milliseconds")[:-6] + "Z"
    return _millisecond(time.time_ns() // 1_000_000)


# Asked for with every event: many come in the same millisecond as the one before, most in the
# same second.
@lru_cache(maxsize=2)
def _millisecond(since_epoch: int) -> str:
    whole, milliseconds = divmod(since_epoch, 1000)
    return f"{_second(whole)}.{milliseconds:03d}Z"


@lru_cache(maxsize=2)
def _second(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()[:19]

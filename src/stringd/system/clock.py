"""Time as the wire and the files write it."""

from datetime import UTC, datetime


def timestamp(seconds: float | None = None) -> str:
    """A moment, by default now, in UTC, with milliseconds and a `Z`.

    `seconds` count from the epoch, as file times do.
    """
    moment = datetime.now(UTC) if seconds is None else datetime.fromtimestamp(seconds, UTC)
    return moment.isoformat(timespec="milliseconds")[:-6] + "Z"

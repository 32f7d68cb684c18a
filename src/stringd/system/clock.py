"""Time as the wire and the timelines write it."""

from datetime import UTC, datetime


def timestamp() -> str:
    """Now, in UTC, with milliseconds and a `Z`."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")[:-6] + "Z"

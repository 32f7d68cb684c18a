"""How long a command may run, as people write it: `90`, `90s`, `20m`, `1h30m`."""

import re
from typing import Final

MAX_SECONDS: Final = 24 * 3600.0
USAGE: Final = "Write a time as 90s, 20m, 2h or 1h30m, at most 24h."
_DURATION: Final = re.compile(
    r"(?i)(?=.)(?:(\d{1,5})h)?(?:(\d{1,5})m(?:in)?)?(?:(\d{1,7}(?:\.\d{1,3})?)s?)?"
)


def parse_duration(text: str) -> float | None:
    """The seconds a text stands for; None when it is not a time or longer than a day."""
    match = _DURATION.fullmatch(text)
    if match is None:
        return None
    hours, minutes, seconds = (float(each or 0) for each in match.groups())
    found = hours * 3600 + minutes * 60 + seconds
    return found if 0 < found <= MAX_SECONDS else None


def shown_duration(seconds: float) -> str:
    """Seconds as they would be typed."""
    if seconds < 60 or seconds % 1:
        return f"{seconds:g}s"
    hours, rest = divmod(int(seconds), 3600)
    minutes, left = divmod(rest, 60)
    parts = ((hours, "h"), (minutes, "m"), (left, "s"))
    return "".join(f"{count}{unit}" for count, unit in parts if count)

"""The lines of an events file: frames as they were sent, each with its number."""

from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct


class _Seq(Struct):
    seq: int = 0


_seq: Final[msgspec.json.Decoder[_Seq]] = msgspec.json.Decoder(_Seq)


def frame_number(line: bytes) -> int | None:
    """The number of a frame; None for a line that is not one."""
    try:
        return _seq.decode(line).seq or None
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None


def unreadable_frames(path: Path) -> int:
    """How many lines of a file are not frames. Raises `OSError`."""
    with path.open("rb") as file:
        return sum(1 for line in file if line.strip() and frame_number(line) is None)

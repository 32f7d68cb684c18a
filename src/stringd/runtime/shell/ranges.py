"""Which part of an output is wanted: `120-180`, `120-`, `120`, `-40` (the last), `bytes 0-4096`."""

import re
from typing import Final, NamedTuple

from stringd.runtime.shell.errors import BadRangeError
from stringd.runtime.shell.transcript import Transcript

USAGE: Final = "//output [first-last | first- | -count | bytes first-last | background]"
_RANGE: Final = re.compile(r"(?P<bytes>bytes\s+)?(?P<first>\d{0,12})(?P<dash>-?)(?P<last>\d{0,12})")


class Excerpt(NamedTuple):
    """A part of an output and the sentence that says which part."""

    title: str
    text: str


def excerpt(transcript: Transcript, wanted: str) -> Excerpt:
    """The wanted part, as much of it as one reply holds. Raises `BadRangeError`."""
    match = _RANGE.fullmatch(wanted.strip().lower())
    if match is None or not (match["first"] or match["last"] or not wanted.strip()):
        raise BadRangeError(wanted.strip())
    first = int(match["first"]) if match["first"] else None
    last = int(match["last"]) if match["last"] else None
    if first is not None and not match["dash"]:
        last = first
    return (_bytes if match["bytes"] else _lines)(transcript, first, last)


def _lines(transcript: Transcript, first: int | None, last: int | None) -> Excerpt:
    total = transcript.lines
    if first is None and last is not None:
        first, last = total - last + 1, total
    start = max(first or 1, 1)
    end = min(total if last is None else last, total)
    found = transcript.read_lines(start, end) if start <= end else []
    if not found:
        return Excerpt(f"output: no such lines, there are {total}", "")
    shown = f"output: lines {start}-{start + len(found) - 1} of {total}"
    return Excerpt(shown + _kept(transcript), "\n".join(found))


def _bytes(transcript: Transcript, first: int | None, last: int | None) -> Excerpt:
    total = transcript.size
    if first is None and last is not None:
        first, last = max(total - last, 0), total
    start, end = first or 0, min(total if last is None else last, total)
    text = transcript.read_bytes(start, end)
    shown = f"output: bytes {start}-{start + len(text.encode())} of {total}"
    return Excerpt(shown + _kept(transcript), text)


def _kept(transcript: Transcript) -> str:
    return "" if transcript.complete else " (the first part; more was printed than is kept)"

"""What a command printed: a bounded view for the reply, the full text on disk for reading later."""

import re
import tempfile
from bisect import bisect_right
from collections import deque
from functools import cached_property
from typing import Final, NamedTuple

from stringd.runtime.shell.cleaning import Cleaner
from stringd.runtime.shell.errors import BadRangeError

# Half of it is the beginning, half the end: both the cause and the verdict of a build stay visible.
REPLY_CHARACTERS: Final = 40_000
# Up to here the text stays in memory; beyond, in an unnamed file only this process can open.
MEMORY_BYTES: Final = 256 * 1024
# A runaway `yes` must not fill the disk before the time limit ends it.
DISK_BYTES: Final = 256 * 1024 * 1024
_INDEX_STEP: Final = 64 * 1024
_CLEANING_BATCH: Final = 64 * 1024


class OutputView(NamedTuple):
    """Text fit for a reply; `truncated` when something was left out of the middle."""

    text: str
    truncated: bool


class Window:
    """The head and the tail of a text of any length, in bounded memory."""

    def __init__(self, limit: int = REPLY_CHARACTERS) -> None:
        self._half = limit // 2
        self._head: list[str] = []
        self._head_room = self._half
        self._tail: deque[str] = deque()
        self._tail_size = 0
        self._dropped = 0
        self._dropped_lines = 0

    def feed(self, text: str) -> None:
        if self._head_room:
            self._head.append(text[: self._head_room])
            text, self._head_room = (
                text[self._head_room :],
                max(0, self._head_room - len(text)),
            )
        if text:
            self._tail.append(text)
            self._tail_size += len(text)
            while self._tail_size - len(self._tail[0]) >= self._half:
                self._drop(self._tail.popleft())

    def view(self) -> OutputView:
        head, tail = "".join(self._head), "".join(self._tail)
        if len(tail) <= self._half and not self._dropped:
            return OutputView((head + tail).rstrip(), False)
        middle, tail = tail[: -self._half], tail[-self._half :]
        head, more = _cut_after_line(head)
        less, tail = _cut_before_line(tail)
        left_out = self._dropped + len(more) + len(middle) + len(less)
        lines = self._dropped_lines + sum(part.count("\n") for part in (more, middle, less))
        note = f"[… {lines} lines, {left_out} characters left out; //output reads them]"
        return OutputView(f"{head.rstrip()}\n{note}\n{tail.rstrip()}", True)

    def _drop(self, text: str) -> None:
        self._tail_size -= len(text)
        self._dropped += len(text)
        self._dropped_lines += text.count("\n")


class Transcript:
    """The full text of one command's output, readable by range."""

    def __init__(self) -> None:
        self._size = 0
        self._newlines = 0
        self._ends_open = False
        self._lines_at: list[int] = [0]
        self._offsets: list[int] = [0]
        self._closed = False
        self.complete = True

    @cached_property
    def _file(self) -> "tempfile.SpooledTemporaryFile[bytes]":
        """Most commands print little or nothing: made when needed."""
        return tempfile.SpooledTemporaryFile(max_size=MEMORY_BYTES)

    @property
    def lines(self) -> int:
        return self._newlines + self._ends_open

    @property
    def size(self) -> int:
        """In bytes."""
        return self._size

    def append(self, text: str) -> None:
        data = text.encode()
        if not data or self._closed:
            return
        if self._size + len(data) > DISK_BYTES:
            self.complete = False
            return
        self._file.seek(self._size)
        self._file.write(data)
        self._size += len(data)
        self._newlines += text.count("\n")
        self._ends_open = not text.endswith("\n")
        if not self._ends_open and self._size - self._offsets[-1] >= _INDEX_STEP:
            self._lines_at.append(self._newlines)
            self._offsets.append(self._size)

    def read_lines(self, first: int, last: int, limit: int = REPLY_CHARACTERS) -> list[str]:
        """Lines `first` to `last`, counted from 1, as many as fit into `limit` characters."""
        place = bisect_right(self._lines_at, first - 1) - 1
        self._file.seek(self._offsets[place])
        for _ in range(first - 1 - self._lines_at[place]):
            self._file.readline()
        found: list[str] = []
        for _ in range(last - first + 1):
            line = self._file.readline(limit + 1)
            limit -= len(line)
            if not line or (limit < 0 and found):
                break
            found.append(line.decode(errors="replace").removesuffix("\n"))
            if limit <= 0:
                break
        return found

    def read_bytes(self, start: int, end: int, limit: int = REPLY_CHARACTERS) -> str:
        self._file.seek(start)
        return self._file.read(max(0, min(end, start + limit) - start)).decode(errors="replace")

    def close(self) -> None:
        """Forget the text; what is appended later is dropped."""
        self._closed = True
        if self._size:
            self._file.close()


class Output:
    """Takes a command's terminal bytes; gives each reply what is new since the last one."""

    def __init__(self) -> None:
        self.transcript = Transcript()
        # Many commands print nothing: made when there is something to clean.
        self._cleaner: Cleaner | None = None
        self._window: Window | None = None
        self._raw: list[bytes] = []
        self._raw_size = 0

    def feed(self, data: bytes) -> None:
        # Cleaning thousands of 4 KB pieces one by one would cost more than reading them.
        self._raw.append(data)
        self._raw_size += len(data)
        if self._raw_size >= _CLEANING_BATCH:
            self._clean()

    def settle(self, *, over: bool = False) -> None:
        """Bring the transcript up to date, the unfinished line included."""
        self._clean()
        if self._cleaner is not None:
            self._keep(self._cleaner.flush(over=over))

    def take(self, *, over: bool = False) -> OutputView:
        """What is new since the last call; nothing follows what is `over`."""
        self.settle(over=over)
        window, self._window = self._window, None
        return window.view() if window is not None else OutputView("", False)

    def _clean(self) -> None:
        if self._raw:
            data = b"".join(self._raw)
            self._raw.clear()
            self._raw_size = 0
            if self._cleaner is None:
                self._cleaner = Cleaner()
            self._keep(self._cleaner.feed(data))

    def _keep(self, text: str) -> None:
        if text:
            if self._window is None:
                self._window = Window()
            self._window.feed(text)
            self.transcript.append(text)


class Background:
    """What jobs printed while no command ran: it belongs to no reply, the latest part is kept."""

    def __init__(self) -> None:
        self._cleaner = Cleaner()
        self._window = Window(REPLY_CHARACTERS // 2)
        self.seen = False

    def feed(self, data: bytes) -> None:
        self.seen = True
        self._window.feed(self._cleaner.feed(data))

    def read(self) -> OutputView:
        self._window.feed(self._cleaner.flush())
        return self._window.view()


def _cut_after_line(text: str) -> tuple[str, str]:
    """Cut a head after its last full line, unless that loses too much of it."""
    place = text.rfind("\n") + 1
    place = place if place > len(text) // 2 else len(text)
    return text[:place], text[place:]


def _cut_before_line(text: str) -> tuple[str, str]:
    place = text.find("\n") + 1
    place = place if place < len(text) // 2 else 0
    return text[:place], text[place:]


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

"""Terminal bytes in, plain text out.

What a program writes to a terminal is data to us: escape sequences are removed, a line rewritten
with carriage returns or backspaces is reduced to its last state, other control characters vanish,
and bytes that are not UTF-8 become U+FFFD. Input may be cut anywhere.
"""

import codecs
import re
from typing import Final

# Longer lines are not progress bars: they pass through instead of waiting for a rewrite.
LONGEST_HELD_LINE: Final = 8192

_STRING_BODY: Final = r"[^\x07\x1b\n]{0,4096}"
_ESCAPE: Final = re.compile(
    rf"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_]{_STRING_BODY}(?:\x07|\x1b\\)|[\]PX^_\[]|[ -/]*[0-~])"
)
_CUT_ESCAPE: Final = re.compile(rf"\x1b(?:\[[0-?]*[ -/]*|[\]PX^_]{_STRING_BODY}\x1b?|[ -/]*)?\Z")
_STRING_STARTS: Final = tuple("]PX^_")
_LONGEST_ESCAPE: Final = 4100
# Full-screen programs place each line; placed text starts a line here too.
_PLACED: Final = re.compile(r"\x1b\[\d+(?:;\d*)?[Hf]")
_MOVE: Final = "\0"
"""Stands for such a move until it is known whether a line has begun; data has no NUL any more."""
_IDLE_MOVES: Final = re.compile("(\n\r*)\0[\0\r]*")
_MOVES: Final = re.compile("\0[\0\r]*")
_C1: Final = re.compile("[\x80-\x9f]")
_KEPT: Final = b"\b\t\n\r\x1b\x07"
_UTF8: Final = codecs.getincrementaldecoder("utf-8")
_DROPPED: Final = bytes(byte for byte in [*range(32), 127] if byte not in _KEPT)


class Cleaner:
    """Feed it what a terminal received; it returns the text that can no longer change."""

    def __init__(self) -> None:
        self._decoder = _UTF8("replace")
        self._escape = ""
        self._line = ""
        self._overlong = False
        self._begun = False
        """Whether the beginning of the open line was handed out already."""

    def feed(self, data: bytes) -> str:
        text = self._escape + self._decoder.decode(data.translate(None, _DROPPED))
        self._escape = ""
        return self._settle(self._without_escapes(text))

    def flush(self, *, over: bool = False) -> str:
        """The unfinished last line too: a prompt has no newline.

        Half a character waits for its other half, unless all is `over`.
        """
        rest = self._line + self._decoder.decode(b"", over)
        if self._escape[1:2] in _STRING_STARTS:
            # A title or link that was never closed must not swallow what follows it.
            rest += self._escape[2:].replace("\x1b", "")
            self._escape = ""
        self._line, self._overlong = "", False
        self._begun = self._begun or bool(rest)
        return _last_state(rest)

    def _without_escapes(self, text: str) -> str:
        if "\x1b" in text:
            cut = _CUT_ESCAPE.search(text, max(0, len(text) - _LONGEST_ESCAPE))
            if cut is not None:
                self._escape = cut.group()
                text = text[: cut.start()]
            text = _ESCAPE.sub("", _PLACED.sub(_MOVE, text)).replace("\x1b", "")
            if _MOVE in text:
                text = self._placed(text)
        if "\x07" in text:
            text = text.replace("\x07", "")
        return text if text.isascii() else _C1.sub("", text)

    def _placed(self, text: str) -> str:
        """Text with a new line for every move that leaves a line that has begun."""
        at_start = not self._begun and not self._overlong and not self._line.strip("\r")
        text = _IDLE_MOVES.sub(r"\1", f"\n{text}" if at_start else text)
        return _MOVES.sub("\n", text.removeprefix("\n") if at_start else text)

    def _settle(self, text: str) -> str:
        """Return finished lines; hold the open one back while it may still be rewritten."""
        finished, newline, self._line = (self._line + text).rpartition("\n")
        if newline:
            self._overlong = self._begun = False
        if "\r" in finished or "\b" in finished:
            finished = "\n".join(map(_last_state, finished.split("\n")))
        if "\r" in self._line:
            self._line = _open_line(self._line)
        return finished + newline + self._release()

    def _release(self) -> str:
        if len(self._line) <= LONGEST_HELD_LINE and not self._overlong:
            return ""
        released, self._line, self._overlong = self._line, "", True
        return _last_state(released)


def clean(data: bytes) -> str:
    """All of a finished output at once."""
    cleaner = Cleaner()
    return cleaner.feed(data) + cleaner.flush(over=True)


def _last_state(line: str) -> str:
    if "\r" in line:
        line = line.rstrip("\r").rpartition("\r")[2]
    if "\b" not in line:
        return line
    first, *others = line.split("\b")
    kept = list(first)
    for piece in others:
        if kept:
            kept.pop()
        kept += piece
    return "".join(kept)


def _open_line(line: str) -> str:
    """Forget states already overwritten, so an endless progress bar stays small."""
    text = line.rstrip("\r")
    return text.rpartition("\r")[2] + ("\r" if len(text) < len(line) else "")

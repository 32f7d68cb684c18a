"""The approver's terminal as a device: size, raw keys, a screen for questions, lending it.

It writes `Painted` text and nothing else. Its settings are put back on every way out.
"""

import errno
import os
import select
import signal
import sys
import termios
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final

from stringd.gate.display import Line, Painted, line, paint, paint_inline
from stringd.gate.errors import TroubleError, os_text
from stringd.gate.question import Size

# Our own control sequences; nobody else's ever pass.
BELL: Final = Painted("\a")
NEW_LINE: Final = Painted("\n")
# A screen of its own, which leaves the one with the history alone; pastes are marked as such; what
# is longer than a line stays in it, so that no text can start the next one.
_OPEN_SCREEN: Final = Painted("\x1b[?1049h\x1b[?2004h\x1b[?7l\x1b[H\x1b[2J")
_CLOSE_SCREEN: Final = Painted("\x1b[0m\x1b[?7h\x1b[?2004l\x1b[?1049l")

# A window that takes no more text is slow for this long, and then in trouble.
SCREEN_SECONDS: Final = 5.0

_INPUT_FLAGS: Final = 0
_LOCAL_FLAGS: Final = 3
_CONTROL_CHARACTERS: Final = 6


class Terminal:
    """Reads keys from and writes lines to one terminal device."""

    def __init__(self, keys: int, screen: int, env: Mapping[str, str]) -> None:
        self.keys = keys
        self._screen = _unblocked(screen)
        self.is_dumb = env.get("TERM") == "dumb"
        self.colour = not env.get("NO_COLOR") and not self.is_dumb
        self._saved: list[Any] | None = None
        self._was_resumed = False
        # The question's screen: whether it is open, and the rows on it, none where that is unknown.
        self._is_open = False
        self._drawn: list[Line] = []

    @classmethod
    def find(cls, env: Mapping[str, str]) -> "Terminal | None":
        """The terminal we were started on: standard input's, else the controlling one."""
        screen = next((number for number in (1, 2) if os.isatty(number)), None)
        if os.isatty(0):
            return cls(0, 0 if screen is None else screen, env)
        try:
            device = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
        except OSError:
            return None
        return cls(device, device if screen is None else screen, env)

    @property
    def size(self) -> Size:
        try:
            columns, rows = os.get_terminal_size(self._screen)
        except OSError:
            columns = rows = 0
        # A terminal that does not know its size says zero.
        return Size(columns or 80, rows or 24)

    @property
    def is_gone(self) -> bool:
        """Whether nobody can ever press a key here again."""
        poll = select.poll()
        poll.register(self.keys, 0)
        return any(events & (select.POLLHUP | select.POLLNVAL) for _, events in poll.poll(0))

    def show(self, *lines: Line) -> None:
        self.write(paint(lines, colour=self.colour))

    def show_inline(self, spans: Line) -> None:
        self.write(paint_inline(spans, colour=self.colour))

    def draw(self, rows: Sequence[Line], *, whole: bool = True) -> None:
        """Show these rows in place of the last ones, the cursor behind the last of them.

        Unless it is `whole`, only rows that differ are written, and a dumb terminal, which has but
        one way to go, is left alone.
        """
        if self.is_dumb:
            if whole:
                self._is_open = True
                self.show(line(""), *rows[:-1])
                self.show_inline(rows[-1])
            return
        last, self._drawn = self._drawn, list(rows)
        whole = whole or len(last) != len(rows)
        changed = [
            # Emptied first: behind a full row the cursor is still on its last character.
            f"\x1b[{number};1H\x1b[2K{paint_inline(spans, colour=self.colour)}"
            for number, spans in enumerate(rows, start=1)
            if whole or last[number - 1] != spans
        ]
        if not whole:
            self.write(Painted(f"\x1b7{''.join(changed)}\x1b8" if changed else ""))
            return
        opening = "" if last else _OPEN_SCREEN
        self._is_open = True
        # What is below goes first, for the same reason.
        below = f"\x1b[{len(rows) + 1};1H\x1b[J" if len(rows) < self.size.rows else ""
        self.write(Painted(f"{opening}{below}{''.join(changed)}"))

    def close_screen(self) -> None:
        """Back to the screen with the history; safe to call at any time."""
        was_open, self._is_open, self._drawn = self._is_open, False, []
        if was_open:
            with suppress(TroubleError):
                self.write(NEW_LINE if self.is_dumb else _CLOSE_SCREEN)

    def forget_screen(self) -> None:
        """Others wrote to the screen, or it has another size: the next drawing starts over."""
        self._drawn = []

    def write(self, text: Painted) -> None:
        """Raises `TroubleError`."""
        data = text.encode("utf-8")
        with _named_trouble():
            while data:
                data = data[self._write_some(data) :]

    def _write_some(self, data: bytes) -> int:
        try:
            return os.write(self._screen, data)
        except BlockingIOError:
            _, ready, _ = select.select([], [self._screen], [], SCREEN_SECONDS)
            if not ready:
                raise
            return 0

    def read(self) -> bytes:
        """The bytes that are there; empty at end of input. Raises `TroubleError`."""
        with _named_trouble():
            return os.read(self.keys, 4096)

    @contextmanager
    def raw(self) -> Iterator[bytes]:
        """Keys arrive one by one and unechoed. Gives what was typed before, which is not a key."""
        with _named_trouble():
            if self._is_background():
                # The keys are somebody else's now, and so are the settings.
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            self._saved = termios.tcgetattr(self.keys)
            self._enter_raw()
            typed = self._typed_ahead()
        try:
            yield typed
        finally:
            self.restore()

    def _typed_ahead(self) -> bytes:
        typed = b""
        while select.select([self.keys], [], [], 0)[0]:
            piece = os.read(self.keys, 4096)
            typed += piece
            if not piece:
                break
        return typed

    def resume(self) -> None:
        """After a stop and continue: be as we were."""
        if self._saved is not None and not self._is_background():
            self._was_resumed = True
            with suppress(termios.error):
                self._enter_raw()

    def take_resumed(self) -> bool:
        """Whether we were stopped and continued since this was last asked."""
        resumed, self._was_resumed = self._was_resumed, False
        return resumed

    def restore(self) -> None:
        """Put the settings back; safe to call at any time."""
        self.close_screen()
        saved, self._saved = self._saved, None
        if saved is not None:
            with suppress(termios.error):
                termios.tcsetattr(self.keys, termios.TCSAFLUSH, saved)

    @contextmanager
    def lent_to(self, group: int) -> Iterator[None]:
        """Let a process group own the terminal, as sudo needs to ask; then take it back.

        Does nothing on a terminal that is not ours to lend.
        """
        if not self._is_foreground():
            yield
            return
        saved = termios.tcgetattr(self.keys)
        self._lend(group)
        try:
            yield
        finally:
            with suppress(OSError):
                os.tcsetpgrp(self.keys, os.getpgrp())
            # Whoever was killed there may have left it without echo.
            with suppress(termios.error):
                termios.tcsetattr(self.keys, termios.TCSAFLUSH, saved)

    def _enter_raw(self) -> None:
        mode = termios.tcgetattr(self.keys)
        mode[_LOCAL_FLAGS] &= ~(termios.ICANON | termios.ECHO)
        # Else Ctrl-S would hold up the screen, and with it every question, instead of denying.
        mode[_INPUT_FLAGS] &= ~termios.IXON
        # Not flushed: a key that is held down since before the question has to be known as one.
        termios.tcsetattr(self.keys, termios.TCSADRAIN, mode)

    def _lend(self, group: int) -> None:
        with suppress(OSError, termios.error):
            mode = termios.tcgetattr(self.keys)
            # A command stopped with Ctrl-Z would keep the terminal and never end.
            mode[_CONTROL_CHARACTERS][termios.VSUSP] = b"\0"
            termios.tcsetattr(self.keys, termios.TCSANOW, mode)
            os.tcsetpgrp(self.keys, group)
        # It may have reached for the terminal before it had it, and been stopped for that.
        with suppress(OSError):
            os.killpg(group, signal.SIGCONT)

    def _is_foreground(self) -> bool:
        return self._foreground() == os.getpgrp()

    def _is_background(self) -> bool:
        return self._foreground() not in (None, os.getpgrp())

    def _foreground(self) -> int | None:
        """The process group whose terminal it is now; None if it is not our session's."""
        try:
            return os.tcgetpgrp(self.keys)
        except OSError:
            return None


def _unblocked(screen: int) -> int:
    """The same screen opened once more, so that only we need not wait for it.

    Whoever waits inside the system holds the device, and nobody could put its settings back.
    """
    flags = os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    try:
        return os.open(os.ttyname(screen), flags)
    except OSError:
        return screen


@contextmanager
def _named_trouble() -> Iterator[None]:
    """Any failure of the terminal is a prompt error on the wire."""
    try:
        yield
    except termios.error as error:
        raise TroubleError(f"prompt error: {os_text(OSError(*error.args))}") from None
    except OSError as error:
        raise TroubleError(f"prompt error: {os_text(error)}") from None


def log(text: str) -> None:
    """A line on standard error, rendered like everything else."""
    with suppress(OSError):
        sys.stderr.write(paint([line(text)], colour=False))
        sys.stderr.flush()

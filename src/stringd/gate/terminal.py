"""The approver's terminal as a device: size, raw keys, lending it to a process group.

It writes `Painted` text and nothing else. Its settings are put back on every way out.
"""

import errno
import os
import select
import signal
import sys
import termios
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Final

from stringd.gate.display import Line, Painted, line, paint, paint_inline
from stringd.gate.errors import TroubleError, os_text
from stringd.gate.question import Size

# Our own control sequences; nobody else's ever pass.
BELL: Final = Painted("\a")
NEW_LINE: Final = Painted("\n")

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
        return Size(max(columns or 80, 20), max(rows or 24, 10))

    def show(self, *lines: Line) -> None:
        self.write(paint(lines, colour=self.colour))

    def show_inline(self, spans: Line) -> None:
        self.write(paint_inline(spans, colour=self.colour))

    def erase_line(self) -> None:
        """Go to the start of an empty line: this one overwritten, or the next on a dumb terminal.

        Blanks do what an escape sequence would, and leave bold and dim the only ones there are.
        """
        blanks = " " * (self.size.columns - 1)
        self.write(NEW_LINE if self.is_dumb else Painted(f"\r{blanks}\r"))

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
    def raw(self) -> Iterator[None]:
        """Keys arrive one by one and unechoed; what was typed before is thrown away."""
        with _named_trouble():
            if self._is_background():
                # The keys are somebody else's now, and so are the settings.
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            self._saved = termios.tcgetattr(self.keys)
            self._enter_raw()
        try:
            yield
        finally:
            self.restore()

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
        termios.tcsetattr(self.keys, termios.TCSAFLUSH, mode)

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

"""A pseudo-terminal, read and written by the event loop."""

import asyncio
import fcntl
import os
import struct
import termios
from collections.abc import Callable
from contextlib import suppress
from typing import Final

COLUMNS: Final = 200
ROWS: Final = 24
# Reads of one loop turn: a noisy program must not starve everyone else.
_READS_PER_TURN: Final = 64
# A terminal hands out about 4 KB at a time.
_LONGEST_READ: Final = 8192
# More than the kernel buffers: what was written before a moment has arrived after this much.
_KERNEL_BUFFER: Final = 1024 * 1024
# A terminal takes about 4 KB of unread input; nobody types this much ahead.
MAX_UNSENT: Final = 1024 * 1024


class Terminal:
    """The program's side is `path`; what it writes is passed to `on_data`."""

    def __init__(self, on_data: Callable[[bytes], None]) -> None:
        self._on_data = on_data
        self._loop = asyncio.get_running_loop()
        self._ours, self.theirs = os.openpty()
        self.path = os.ttyname(self.theirs)
        self._unsent = b""
        self._typed = False
        _prepare(self.theirs)
        os.set_blocking(self._ours, False)
        self._open = True
        self._reading = False
        self.listen()

    def listen(self) -> None:
        """Read, also again after a time in which no program held the other side."""
        if self._open and not self._reading:
            self._reading = True
            self._loop.add_reader(self._ours, self._readable)

    def hand_over(self) -> None:
        """A program holds the other side now: it is its alone."""
        if self.theirs >= 0:
            os.close(self.theirs)
            self.theirs = -1

    def drain(self) -> None:
        """Pass on everything written up to now.

        A non-blocking read of a terminal says "nothing" only after the kernel has moved all that
        was written before.
        """
        passed = 0
        while passed < _KERNEL_BUFFER and (data := self._read()):
            self._on_data(data)
            passed += len(data)

    def write(self, data: bytes) -> None:
        """Type `data`, as fast as the program takes it."""
        self._typed = True
        self._unsent = (self._unsent + data)[:MAX_UNSENT]
        self._writable()

    def forget_typed(self) -> None:
        """Drop input no program has read."""
        if not self._typed or not self._open:
            return
        self._typed, self._unsent = False, b""
        self._loop.remove_writer(self._ours)
        with suppress(OSError):
            theirs = os.open(self.path, os.O_RDWR | os.O_NOCTTY)
            try:
                termios.tcflush(theirs, termios.TCIFLUSH)
            finally:
                os.close(theirs)

    @property
    def foreground(self) -> int | None:
        """The process group that owns the terminal."""
        with suppress(OSError):
            return os.tcgetpgrp(self._ours) or None
        return None

    @property
    def raw(self) -> bool:
        """Whether a program reads single keys instead of lines."""
        with suppress(termios.error):
            return not termios.tcgetattr(self._ours)[3] & termios.ICANON
        return False

    def close(self) -> None:
        if self._open:
            self._stop_reading()
            self._loop.remove_writer(self._ours)
            self._open = False
            os.close(self._ours)
        self.hand_over()

    def _readable(self) -> None:
        pieces: list[bytes] = []
        while len(pieces) < _READS_PER_TURN and (data := self._read()):
            pieces.append(data)
        if pieces:
            self._on_data(b"".join(pieces))

    def _read(self) -> bytes:
        if not self._open:
            return b""
        try:
            return os.read(self._ours, _LONGEST_READ)
        except (BlockingIOError, InterruptedError):
            return b""
        except OSError:
            # Nobody holds the other side: for now there is nothing to come.
            self._stop_reading()
            return b""

    def _stop_reading(self) -> None:
        self._reading = False
        self._loop.remove_reader(self._ours)

    def _writable(self) -> None:
        try:
            self._unsent = self._unsent[os.write(self._ours, self._unsent) :]
        except (BlockingIOError, InterruptedError):
            pass
        except OSError:
            self._unsent = b""
        if self._unsent:
            self._loop.add_writer(self._ours, self._writable)
        else:
            self._loop.remove_writer(self._ours)


def _prepare(terminal: int) -> None:
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    state = termios.tcgetattr(terminal)
    # Line feeds stay line feeds, and Ctrl-S is a key like any other: nobody is there to resume.
    state[0] &= ~termios.IXON
    state[1] &= ~termios.ONLCR
    state[3] &= ~termios.ECHO
    termios.tcsetattr(terminal, termios.TCSANOW, state)

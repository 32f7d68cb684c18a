"""A pseudo-terminal, read and written by the event loop."""

import asyncio
import fcntl
import os
import struct
import termios
from collections.abc import Callable
from contextlib import suppress
from typing import Final, NamedTuple

COLUMNS: Final = 200
ROWS: Final = 24
SMALLEST: Final = 2
LARGEST: Final = 1000
# Reads of one loop turn: a noisy program must not starve everyone else.
_READS_PER_TURN: Final = 64
# A terminal hands out about 4 KB at a time.
_LONGEST_READ: Final = 8192
# More than the kernel buffers: what was written before a moment has arrived after this much.
_KERNEL_BUFFER: Final = 1024 * 1024
# A terminal takes about 4 KB of unread input; nobody types this much ahead.
MAX_UNSENT: Final = 1024 * 1024


class ScreenSize(NamedTuple):
    """Of a screen on which a program draws."""

    columns: int
    rows: int

    @property
    def possible(self) -> bool:
        return all(SMALLEST <= each <= LARGEST for each in self)


PLAIN_SIZE: Final = ScreenSize(COLUMNS, ROWS)


class ShellTerminal:
    """The program's side is `path`; what it writes is passed to `on_data`.

    That side stays open here too (`theirs`): a terminal no program holds for a moment would read
    as closed.
    """

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
        self._loop.add_reader(self._ours, self._readable)

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
        if not self._open:
            return
        self._typed = True
        self._unsent = (self._unsent + data)[:MAX_UNSENT]
        self._writable()

    def forget_typed(self) -> None:
        """Drop input no program has read."""
        if not self._typed or not self._open:
            return
        self._typed, self._unsent = False, b""
        self._loop.remove_writer(self._ours)
        termios.tcflush(self.theirs, termios.TCIFLUSH)

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

    def become_screen(self, size: ScreenSize) -> None:
        """Behave as a person's terminal does, until `become_plain`."""
        if self._open:
            _prepare(self.theirs, size, screen=True)

    def become_plain(self) -> None:
        """Behave as text for an agent needs it."""
        if self._open:
            _prepare(self.theirs)

    def resize(self, size: ScreenSize) -> None:
        """Change the size; the program that draws hears of it."""
        if self._open:
            _set_size(self.theirs, size)

    def close(self) -> None:
        if self._open:
            self._open = False
            self._loop.remove_reader(self._ours)
            self._loop.remove_writer(self._ours)
            os.close(self._ours)
            os.close(self.theirs)

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

    def _writable(self) -> None:
        try:
            self._unsent = self._unsent[os.write(self._ours, self._unsent) :]
        except (BlockingIOError, InterruptedError):
            pass
        if self._unsent:
            self._loop.add_writer(self._ours, self._writable)
        else:
            self._loop.remove_writer(self._ours)


def _set_size(terminal: int, size: ScreenSize) -> None:
    packed = struct.pack("HHHH", size.rows, size.columns, 0, 0)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, packed)


def _prepare(terminal: int, size: ScreenSize = PLAIN_SIZE, *, screen: bool = False) -> None:
    _set_size(terminal, size)
    state = termios.tcgetattr(terminal)
    # Ctrl-S is a key like any other: nobody is there to resume.
    state[0] &= ~termios.IXON
    if screen:
        state[1] |= termios.ONLCR
        state[3] |= termios.ECHO
    else:
        # Line feeds stay line feeds.
        state[1] &= ~termios.ONLCR
        state[3] &= ~termios.ECHO
    termios.tcsetattr(terminal, termios.TCSANOW, state)

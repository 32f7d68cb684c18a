"""Whether somebody opened a file, by the kernel's word: whoever runs a program opens it."""

import ctypes
import os
from typing import Final

_IN_OPEN: Final = 0x20


class OpenedWatch:
    """Watches a file from now on, until it is closed.

    A process cannot be started from the file unnoticed. Others may open it too, so an opened file
    says only that a process may have been started.
    """

    def __init__(self, path: str) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        self._events: int = libc.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK)
        if (
            self._events >= 0
            and libc.inotify_add_watch(self._events, os.fsencode(path), _IN_OPEN) < 0
        ):
            self.close()

    def was_opened(self) -> bool:
        """In doubt it was."""
        if self._events < 0:
            return True
        try:
            return bool(os.read(self._events, 4096))
        except BlockingIOError:
            return False

    def close(self) -> None:
        if self._events >= 0:
            os.close(self._events)
            self._events = -1

"""Waiting for something while the caller may hang up and the gate may stop."""

import os
import select
import socket
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Final

from stringd.gate.errors import AbortedError, CallerGoneError, StoppingError

READABLE: Final = select.POLLIN
_LAST_WORDS: Final = 4096
# A half-closed caller still listens: only a full hang-up raises these.
_HUNG_UP: Final = select.POLLHUP | select.POLLERR | select.POLLNVAL


class Signal:
    """A flag that can be waited for like a descriptor, by any number of threads."""

    def __init__(self) -> None:
        self._descriptor = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self.is_set = False

    def fileno(self) -> int:
        return self._descriptor

    def set(self) -> None:
        self.is_set = True
        os.eventfd_write(self._descriptor, 1)

    def clear(self) -> None:
        self.is_set = False
        with suppress(BlockingIOError):
            os.eventfd_read(self._descriptor)

    def close(self) -> None:
        os.close(self._descriptor)


class Watch:
    """One request's view of the world: its caller, and the gate's own shutdown."""

    def __init__(
        self, caller: socket.socket, stopping: Signal, aborting: Signal | None = None
    ) -> None:
        self._caller = caller
        self._stopping = stopping
        self._aborting = aborting

    def with_abort(self, aborting: Signal) -> "Watch":
        """The same view, and of the person who may end the command while it runs."""
        return Watch(self._caller, self._stopping, aborting)

    def last_words(self) -> bytes:
        """What a caller that hung up wrote after its request, as far as it is short."""
        try:
            return self._caller.recv(_LAST_WORDS, socket.MSG_DONTWAIT)
        except OSError:
            return b""

    def check(self) -> None:
        """Raise `CallerGoneError` or `StoppingError` if it is so now."""
        self.wait({}, 0)

    def wait(
        self, wanted: Mapping[int, int], seconds: float | None, *, caller: bool = True
    ) -> dict[int, int]:
        """Wait for any of the wanted descriptors; what happened on them, empty after the time.

        Raises `StoppingError`, `AbortedError`, and `CallerGoneError` unless the caller no longer
        matters.
        """
        poll = select.poll()
        for descriptor, events in wanted.items():
            poll.register(descriptor, events)
        poll.register(self._stopping.fileno(), READABLE)
        if self._aborting is not None:
            poll.register(self._aborting.fileno(), READABLE)
        if caller:
            poll.register(self._caller.fileno(), 0)
        happened = dict(poll.poll(None if seconds is None else max(0, round(seconds * 1000 + 0.5))))
        if self._stopping.is_set:
            raise StoppingError
        if self._aborting is not None and self._aborting.is_set:
            raise AbortedError
        if caller and happened.pop(self._caller.fileno(), 0) & _HUNG_UP:
            raise CallerGoneError
        happened.pop(self._stopping.fileno(), None)
        return happened


def wait_for(wanted: Iterable[int | Signal], seconds: float | None = None) -> set[int]:
    """Wait for any of these to be readable or gone; which, empty after the time."""
    poll = select.poll()
    for each in wanted:
        poll.register(each if isinstance(each, int) else each.fileno(), READABLE)
    limit = None if seconds is None else max(0, round(seconds * 1000 + 0.5))
    return {descriptor for descriptor, _ in poll.poll(limit)}

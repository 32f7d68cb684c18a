"""One terminal, many requests: turns are taken in the order of asking, callers alternating."""

import threading
from collections import deque
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager

from stringd.gate.watch import READABLE, Signal, Watch


class Turns:
    """A queue for the terminal. A caller that disconnects leaves the queue."""

    def __init__(self, free: Signal | None = None) -> None:
        self._lock = threading.Lock()
        self._queue: deque[tuple[Hashable, Signal]] = deque()
        self._taken = False
        self._served: Hashable = None
        # Set while nobody holds the terminal.
        self._free = free
        self._wanted: Signal | None = None
        self._say_free(True)

    @property
    def waiting(self) -> int:
        """How many are in the queue, the one at the terminal not counted."""
        return len(self._queue)

    @contextmanager
    def take(self, watch: Watch, caller: Hashable = None) -> Iterator[None]:
        """Hold the terminal. Raises what `Watch.wait` raises while queueing.

        Whoever has many requests in the queue does not keep another caller waiting for all of them.
        """
        self._enter(watch, caller)
        try:
            yield
        finally:
            self._pass_on()

    def when_free(self, action: Callable[[], None]) -> bool:
        """Run a short action now if nobody holds the terminal; else do nothing and say so."""
        with self._lock:
            if self._taken:
                return False
            action()
            return True

    @contextmanager
    def borrow(self) -> Iterator[Signal | None]:
        """Hold the terminal until somebody wants it, which sets the signal; None if it is taken."""
        with self._lock:
            if self._taken:
                wanted = None
            else:
                self._taken, wanted = True, Signal()
                self._wanted = wanted
                self._say_free(False)
        if wanted is None:
            yield None
            return
        try:
            yield wanted
        finally:
            with self._lock:
                self._wanted = None
            wanted.close()
            self._pass_on()

    def _enter(self, watch: Watch, caller: Hashable) -> None:
        with self._lock:
            if not self._taken:
                self._taken, self._served = True, caller
                self._say_free(False)
                return
            called = Signal()
            place = caller, called
            self._queue.append(place)
            if self._wanted is not None:
                self._wanted.set()
        try:
            watch.wait({called.fileno(): READABLE}, None)
        except BaseException:
            self._leave(place)
            raise
        finally:
            called.close()

    def _leave(self, place: tuple[Hashable, Signal]) -> None:
        with self._lock:
            if place in self._queue:
                self._queue.remove(place)
                return
        # Called and gone in the same moment: the turn is ours to give away.
        self._pass_on()

    def _pass_on(self) -> None:
        with self._lock:
            if not self._queue:
                self._taken = False
                self._say_free(True)
                return
            others = (place for place in self._queue if place[0] != self._served)
            place = next(others, self._queue[0])
            self._queue.remove(place)
            self._served, called = place
            called.set()

    def _say_free(self, free: bool) -> None:
        if self._free is not None:
            (self._free.set if free else self._free.clear)()

"""One terminal, many requests: turns are taken strictly in the order of asking."""

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from stringd.gate.watch import READABLE, Signal, Watch


class Turns:
    """A queue for the terminal. Whoever hangs up while queueing leaves the queue."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._queue: deque[Signal] = deque()
        self._taken = False

    @property
    def waiting(self) -> int:
        """How many stand in the queue, the one at the terminal not counted."""
        return len(self._queue)

    @contextmanager
    def take(self, watch: Watch) -> Iterator[None]:
        """Hold the terminal. Raises what `Watch.wait` raises while queueing."""
        self._enter(watch)
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

    def _enter(self, watch: Watch) -> None:
        with self._lock:
            if not self._taken:
                self._taken = True
                return
            called = Signal()
            self._queue.append(called)
        try:
            watch.wait({called.fileno(): READABLE}, None)
        except BaseException:
            self._leave(called)
            raise
        finally:
            called.close()

    def _leave(self, called: Signal) -> None:
        with self._lock:
            if called in self._queue:
                self._queue.remove(called)
                return
        # Called and gone in the same moment: the turn is ours to give away.
        self._pass_on()

    def _pass_on(self) -> None:
        with self._lock:
            if self._queue:
                self._queue.popleft().set()
            else:
                self._taken = False

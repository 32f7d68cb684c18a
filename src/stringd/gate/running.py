"""The commands that run now, and the way to end them from the terminal."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from stringd.gate.watch import Signal


class RunningCommands:
    """Knows each running command by the signal that ends it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._signals: set[Signal] = set()

    def __len__(self) -> int:
        return len(self._signals)

    @contextmanager
    def command(self) -> Iterator[Signal]:
        """One command from its start to its end."""
        signal = Signal()
        with self._lock:
            self._signals.add(signal)
        try:
            yield signal
        finally:
            with self._lock:
                self._signals.discard(signal)
            signal.close()

    def abort(self) -> int:
        """End all of them; how many there were."""
        with self._lock:
            for signal in self._signals:
                signal.set()
            return len(self._signals)

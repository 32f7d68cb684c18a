"""A daemon that measures how late its event loop comes to what it planned.

A loop that is busy is late, and so is one that waits for the interpreter's lock while another
thread holds it. Time in which a thread of the daemon could run and the machine ran something else
is not counted.
SIGUSR1 prints the longest delay since the last time, in milliseconds.
"""

import asyncio
import os
import signal
import threading
import time
from contextlib import suppress

from stringd.server.app import App
from stringd.server.serve import listeners, run
from stringd.server.settings import load_settings

TICK_SECONDS = 0.005


class Probe:
    """Plans to run again and again, and notes how late it does."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._schedules: dict[str, int] = {}
        self._threads = 0
        self._longest = 0.0
        self._loop.add_signal_handler(signal.SIGUSR1, self._report)
        self._plan()

    def _plan(self) -> None:
        self._queued = self._queued_nanoseconds()
        self._planned = time.monotonic() + TICK_SECONDS
        self._loop.call_later(TICK_SECONDS, self._run)

    def _run(self) -> None:
        self._note()
        self._plan()

    def _note(self) -> None:
        late = time.monotonic() - self._planned
        before, now = self._queued, self._queued_nanoseconds()
        queued = sum(now[thread] - before[thread] for thread in now.keys() & before.keys())
        self._longest = max(self._longest, late - queued / 1e9)

    def _queued_nanoseconds(self) -> dict[str, int]:
        """How long each thread has waited for a processor: any of them may hold the lock."""
        if threading.active_count() != self._threads:
            self._find_threads()
        waited = {}
        for thread, schedule in self._schedules.items():
            # A thread that ended cannot be read any more.
            with suppress(OSError):
                waited[thread] = int(os.pread(schedule, 100, 0).split()[1])
        return waited

    def _find_threads(self) -> None:
        self._threads = threading.active_count()
        for schedule in self._schedules.values():
            os.close(schedule)
        self._schedules.clear()
        for thread in os.listdir("/proc/self/task"):  # noqa: PTH208
            with suppress(OSError):
                path = f"/proc/self/task/{thread}/schedstat"
                self._schedules[thread] = os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    def _report(self) -> None:
        # The signal may be handled before what is late by now, which then counts here only.
        self._note()
        self._queued = self._queued_nanoseconds()
        self._planned = max(self._planned, time.monotonic())
        longest, self._longest = self._longest, 0.0
        print(f"{longest * 1e3:.1f}", flush=True)


def ready(app: App) -> None:  # noqa: ARG001 - what a daemon calls when it takes connections
    Probe()
    print("ready", flush=True)


if __name__ == "__main__":
    settings = load_settings(os.environ)
    with listeners(settings) as sockets:
        run(settings, sockets, ready)

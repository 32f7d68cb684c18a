"""A daemon that measures how late its event loop comes to what it planned.

A loop that is busy is late, and so is one that waits for the interpreter's lock while another
thread holds it. Time in which its thread could run and the machine ran something else is not
counted.
SIGUSR1 prints the longest delay since the last time, in milliseconds.
"""

import asyncio
import os
import signal
import threading
import time

from stringd.server.app import App
from stringd.server.serve import run
from stringd.server.settings import load_settings

TICK_SECONDS = 0.005


class Probe:
    """Plans to run again and again, and notes how late it does."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        path = f"/proc/self/task/{threading.get_native_id()}/schedstat"
        self._schedule = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self._longest = 0.0
        self._loop.add_signal_handler(signal.SIGUSR1, self._report)
        self._plan()

    def _plan(self) -> None:
        self._queued = self._queued_seconds()
        self._planned = time.monotonic() + TICK_SECONDS
        self._loop.call_later(TICK_SECONDS, self._run)

    def _run(self) -> None:
        self._note()
        self._plan()

    def _note(self) -> None:
        late = time.monotonic() - self._planned
        self._longest = max(self._longest, late - (self._queued_seconds() - self._queued))

    def _queued_seconds(self) -> float:
        """How long the loop's thread has waited for a processor, since it exists."""
        return int(os.pread(self._schedule, 100, 0).split()[1]) / 1e9

    def _report(self) -> None:
        # The signal may be handled before what is late by now, which then counts here only.
        self._note()
        self._queued = self._queued_seconds()
        self._planned = max(self._planned, time.monotonic())
        longest, self._longest = self._longest, 0.0
        print(f"{longest * 1e3:.1f}", flush=True)


def ready(app: App) -> None:  # noqa: ARG001 - what a daemon calls when it takes connections
    Probe()
    print("ready", flush=True)


if __name__ == "__main__":
    run(load_settings(os.environ), ready)

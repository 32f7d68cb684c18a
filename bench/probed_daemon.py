"""A daemon with a thread that measures how long its event loop was busy without a pause.

Processor time of the loop's thread is measured, so what else the machine does hardly counts.
SIGUSR1 prints the longest stretch since the last time, in milliseconds.
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
    """Asks the loop again and again to say that it is there."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._clock = time.pthread_getcpuclockid(threading.get_ident())
        self._longest = 0.0
        self._loop.add_signal_handler(signal.SIGUSR1, self._report)
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        answered = threading.Event()
        while True:
            answered.clear()
            asked = time.clock_gettime(self._clock)
            self._loop.call_soon_threadsafe(answered.set)
            answered.wait()
            self._longest = max(self._longest, time.clock_gettime(self._clock) - asked)
            time.sleep(TICK_SECONDS)

    def _report(self) -> None:
        longest, self._longest = self._longest, 0.0
        print(f"{longest * 1e3:.1f}", flush=True)


def ready(app: App) -> None:  # noqa: ARG001 - what a daemon calls when it takes connections
    Probe()
    print("ready", flush=True)


if __name__ == "__main__":
    run(load_settings(os.environ), ready)

"""What a worker process runs: one function after the other, each named by the daemon.

It ends with the daemon: while it waits, by the end of their connection; while it works, by a
signal of the kernel, and at the latest by its own alarm.
"""

import gc
import os
import resource
import signal
import socket
from collections.abc import Sequence
from importlib import import_module
from typing import Final

from stringd.system.process_guard import die_with_parent
from stringd.system.workers.frames import pack, receive

DONE: Final = "done"
FAILED: Final = "failed"
# A page of 10 MB takes some hundred MB to convert; Python and the parsers' code count too.
MEMORY_BYTES: Final = 2 * 1024 * 1024 * 1024
_NICENESS: Final = 5
# The daemon ends a worker at its limit; the alarm is for a daemon that is gone.
_ALARM_GRACE_SECONDS: Final = 1.0


def main(parent: int) -> None:
    """Serve the daemon `parent`, which is at the other end of standard input."""
    die_with_parent(parent)
    _limit()
    with socket.socket(fileno=os.dup(0)) as connection:
        connection.settimeout(None)
        connection.sendall(pack(()))
        while True:
            try:
                seconds, module, function, *texts = receive(connection)
            except (EOFError, OSError):
                return
            signal.setitimer(signal.ITIMER_REAL, float(seconds) + _ALARM_GRACE_SECONDS)
            answer = pack(_called(module, function, texts))
            signal.setitimer(signal.ITIMER_REAL, 0)
            del texts
            connection.sendall(answer)
            gc.collect()


def _limit() -> None:
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    # Ctrl-C in the daemon's terminal is the daemon's to act on.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for what, most in (
        (resource.RLIMIT_AS, MEMORY_BYTES),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, 0),
    ):
        _, hard = resource.getrlimit(what)
        least = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(what, (least, least))
    os.nice(_NICENESS)


def _called(module: str, function: str, texts: Sequence[str]) -> tuple[str, str]:
    try:
        return DONE, getattr(import_module(module), function)(*texts)
    except MemoryError:
        return FAILED, f"it takes more than {MEMORY_BYTES >> 20} MB of memory"
    except RecursionError:
        return FAILED, "it is nested too deeply"
    except Exception as error:  # noqa: BLE001 - whatever it was, the daemon is told
        return FAILED, f"{type(error).__name__}: {error}"

"""What a process asks of the kernel for its own safety: who may read it, and when it dies."""

import ctypes
import os
import signal
import sys
from typing import Final

_PR_SET_PDEATHSIG: Final = 1
_PR_SET_DUMPABLE: Final = 4


def be_unreadable() -> bool:
    """Keep other processes of the account from tracing this one or reading its memory,
    environment and descriptors through /proc; whether the kernel could.

    It also prevents core dumps, and a child that starts another program is readable again.
    """
    return _prctl(_PR_SET_DUMPABLE, 0)


def die_with_parent(parent: int, number: signal.Signals = signal.SIGKILL) -> bool:
    """Send this process a signal when the thread that started it ends; whether the kernel could.

    `parent` is the process that started this one: if it is gone already, the signal is sent now.
    """
    done = _prctl(_PR_SET_PDEATHSIG, number)
    if os.getppid() != parent:
        os.kill(os.getpid(), number)
    return done


def _prctl(option: int, value: int) -> bool:
    if sys.platform != "linux":
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    rest = (ctypes.c_ulong(0),) * 3
    return bool(libc.prctl(option, ctypes.c_ulong(value), *rest) == 0)

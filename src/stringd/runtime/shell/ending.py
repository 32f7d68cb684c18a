"""Ending a child and everything it ever started."""

import asyncio
import os
import signal
from collections.abc import Callable, Iterable
from typing import Final

from stringd.runtime.shell.child import Child
from stringd.runtime.shell.processes import Process, descendants, left_behind, send_signal

# Long enough for a server to remove its socket file, short enough not to be noticed on close.
GRACE_SECONDS: Final = 0.5
# A fork bomb refills while it is being emptied; a frozen parent and this many rounds outrun it.
_ROUNDS: Final = 200
_POLITE: Final = (signal.SIGHUP, signal.SIGTERM, signal.SIGCONT)


async def end_tree(child: Child, mark: str, grace: float = GRACE_SECONDS) -> None:
    """Ask all descendants to end, then kill what stays, then the child itself.

    The child stands still meanwhile: a shell must not go on to the next command of its line, and
    while it exists every orphan below it is handed to it and found.
    """
    if not child.exited.done():
        child.send_signal(signal.SIGSTOP)
        await _ask(descendants(child.pid), grace)
        await _kill_all(lambda: descendants(child.pid))
        # A hangup runs the shell's EXIT trap; whatever that starts is swept below.
        child.send_signal(signal.SIGHUP)
        child.send_signal(signal.SIGCONT)
        await asyncio.wait({child.exited}, timeout=grace)
        child.send_signal(signal.SIGKILL)
        await child.exited
    await sweep(child.pid, mark, grace=0)


async def sweep(session: int, mark: str, grace: float = GRACE_SECONDS) -> None:
    """End what a child that is gone left behind, wherever it went."""
    remaining = left_behind(session, mark)
    if remaining:
        await _ask(remaining, grace)
        await _kill_all(lambda: left_behind(session, mark))


async def _ask(processes: Iterable[Process], grace: float) -> None:
    processes = list(processes)
    if not processes or not grace:
        return
    for number in _POLITE:
        for process in processes:
            send_signal(process, number)
    await gone(processes, grace)


async def _kill_all(find: Callable[[], list[Process]]) -> None:
    for _ in range(_ROUNDS):
        remaining = find()
        if not remaining:
            return
        for process in remaining:
            send_signal(process, signal.SIGKILL)
        await gone(remaining, GRACE_SECONDS)


async def gone(processes: Iterable[Process], timeout: float) -> None:  # noqa: ASYNC109
    """Wait until all have ended, at most `timeout` seconds."""
    loop = asyncio.get_running_loop()
    endings: dict[int, asyncio.Future[None]] = {}
    try:
        for process in processes:
            try:
                handle = os.pidfd_open(process.pid)
            except ProcessLookupError:
                continue
            endings[handle] = ending = loop.create_future()
            loop.add_reader(handle, _resolve, ending)
        if endings:
            await asyncio.wait(endings.values(), timeout=timeout)
    finally:
        for handle in endings:
            loop.remove_reader(handle)
            os.close(handle)


def _resolve(ending: asyncio.Future[None]) -> None:
    if not ending.done():
        ending.set_result(None)

"""Ending a child and everything it ever started."""

import asyncio
import os
import signal
from collections.abc import Callable, Iterable
from typing import Final

from stringd.system.processes.child import ChildProcess
from stringd.system.processes.orphans import collect, orphans_of
from stringd.system.processes.table import ProcessEntry, descendants, send_signal

# Long enough for a server to remove its socket file, short enough not to be noticed on close.
GRACE_SECONDS: Final = 0.5
# A fork bomb refills while it is being emptied; a frozen parent and this many rounds outrun it.
_ROUNDS: Final = 200
_POLITE: Final[tuple[signal.Signals, ...]] = (signal.SIGHUP, signal.SIGTERM, signal.SIGCONT)


async def end_tree(
    child: ChildProcess,
    mark: str,
    grace: float = GRACE_SECONDS,
    ends_by: signal.Signals = signal.SIGHUP,
) -> None:
    """Ask all descendants to end, then kill what stays, then the child itself by `ends_by`.

    The child is stopped meanwhile: a shell must not continue to the next command of its line, and
    while it exists every orphan below it is handed to it and found.
    """
    ended: set[int] = set()
    if not child.exited.done():
        child.send_signal(signal.SIGSTOP)
        ended = await _end_all(lambda: descendants(child.pid), grace)
        # It runs the shell's EXIT trap; whatever that starts is swept below.
        child.send_signal(ends_by)
        child.send_signal(signal.SIGCONT)
        await asyncio.wait({child.exited}, timeout=grace)
        child.send_signal(signal.SIGKILL)
        await child.exited
    await end_orphans(child.pid, mark, grace, ended)


async def end_orphans(
    session: int, mark: str, grace: float = GRACE_SECONDS, ended: Iterable[int] = ()
) -> None:
    """End what a child that is gone left behind; `ended` are others of it that have ended."""
    found = await _end_all(lambda: orphans_of(session, mark), grace)
    collect(session, found | {*ended})


async def _end_all(find: Callable[[], list[ProcessEntry]], grace: float) -> set[int]:
    """Ask once, then kill until nothing is found; returns whom it found."""
    found: set[int] = set()
    numbers, patience = _POLITE, grace
    for _ in range(_ROUNDS):
        remaining = find()
        if not remaining:
            break
        found.update(process.pid for process in remaining)
        for number in numbers:
            for process in remaining:
                send_signal(process, number)
        await gone(remaining, patience)
        numbers, patience = (signal.SIGKILL,), GRACE_SECONDS
    return found


async def gone(processes: Iterable[ProcessEntry], timeout: float | None) -> None:  # noqa: ASYNC109
    """Wait until all have ended, at most `timeout` seconds if it is given."""
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

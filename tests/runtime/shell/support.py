"""Looking at processes from outside, and meeting them at named pipes."""

import asyncio
from pathlib import Path

from stringd.runtime.shell.shell import Shell
from stringd.system.processes.table import find
from tests.support.daemon import WAIT_SECONDS


def alive(pid: int) -> bool:
    """Whether the process exists and is not merely waiting to be collected."""
    process = find(pid)
    return process is not None and process.alive


async def read(shell: Shell, pipe: str) -> None:
    """Return when a process of the shell has written to a named pipe in its directory."""
    path = Path(shell.directory) / pipe
    await asyncio.wait_for(asyncio.to_thread(path.read_text), WAIT_SECONDS)


async def write(shell: Shell, pipe: str) -> None:
    """Release a process of the shell that reads from a named pipe in its directory."""
    path = Path(shell.directory) / pipe
    await asyncio.wait_for(asyncio.to_thread(path.write_text, "\n"), WAIT_SECONDS)

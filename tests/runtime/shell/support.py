"""Looking at processes from outside."""

from stringd.runtime.shell.processes import find


def alive(pid: int) -> bool:
    """Whether the process exists and is not merely waiting to be collected."""
    process = find(pid)
    return process is not None and process.alive

"""The job that owns a shell's terminal: what it is doing, and ending it."""

import os
import signal
from contextlib import suppress

from stringd.runtime.shell.terminal import ShellTerminal
from stringd.system.processes.table import descendants, find, send_signal, waits_for_input


class Foreground:
    """Looks at the terminal's foreground process group whenever it is asked."""

    def __init__(self, shell: int, terminal: ShellTerminal) -> None:
        self._shell = shell
        self._terminal = terminal

    def waits_for_input(self) -> bool:
        """Whether one of its processes, the shell included, sleeps until something is typed."""
        group = self._terminal.foreground
        own = find(self._shell)
        if group is None or own is None:
            return False
        raw = self._terminal.raw
        return any(
            waits_for_input(process, self._terminal.path, raw=raw)
            for process in (own, *descendants(self._shell))
            if process.group == group
        )

    def interrupt(self) -> None:
        group = self._terminal.foreground
        if group is not None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(group, signal.SIGINT)
                os.killpg(group, signal.SIGCONT)

    def kill(self) -> None:
        """Kill the whole job, groups it made for itself included; the shell is only interrupted.

        The interrupt keeps it from going on to the next command of its line.
        """
        group = self._terminal.foreground
        with suppress(ProcessLookupError):
            os.kill(self._shell, signal.SIGINT)
        below = {process.pid: process for process in descendants(self._shell)}
        for process in below.values():
            if process.group != group:
                continue
            job = process
            while job.parent in below:
                job = below[job.parent]
            for member in (job, *descendants(job.pid)):
                send_signal(member, signal.SIGKILL)

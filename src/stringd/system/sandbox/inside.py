"""The processes inside a sandbox, from outside."""

import signal

from stringd.system.processes.table import (
    ProcessEntry,
    children,
    descendants,
    find,
    is_first_of_namespace,
    send_signal,
)


def processes_inside(pid: int) -> list[ProcessEntry]:
    """What runs in the sandbox that the process `pid` is.

    That process and its child are the walls, and so is a grandchild that is the first process of a
    namespace; the command is the next below.
    """
    found: list[ProcessEntry] = []
    for child in children(pid):
        first = [each for each in children(child) if is_first_of_namespace(each)]
        for command in children(first[0] if first else child):
            entry = find(command)
            found += [entry] if entry is not None and entry.alive else []
            found += descendants(command)
    return found


def ask_to_end(pid: int, number: signal.Signals = signal.SIGTERM) -> int:
    """Send a signal to what runs in the sandbox that `pid` is, so that it can end by itself; how
    many processes there are.

    A signal to `pid` itself would end the walls, and with them everything inside at once.
    """
    inside = processes_inside(pid)
    for each in inside:
        send_signal(each, number)
    return len(inside)

"""The processes inside a sandbox, from outside."""

import os
import signal

from stringd.system.sandbox.launcher.family import children_by_parent

_WALL_GENERATIONS = 2
"""The process a caller starts and its child are the walls; the command is the grandchild."""


def ask_to_end(pid: int, number: signal.Signals = signal.SIGTERM) -> int:
    """Send a signal to what runs in the sandbox that `pid` is, so that it can end by itself; how
    many processes got it.

    A signal to `pid` itself would end the walls, and with them everything inside at once.
    """
    asked = 0
    for each in processes_inside(pid):
        try:
            os.kill(each, number)
        except ProcessLookupError:
            continue
        asked += 1
    return asked


def processes_inside(pid: int) -> list[int]:
    """The ids, as seen from outside, of what runs in the sandbox that `pid` is."""
    children = children_by_parent()
    generation = [pid]
    for _ in range(_WALL_GENERATIONS):
        generation = [child for each in generation for child in children.get(each, ())]
    found: list[int] = []
    while generation:
        found += generation
        generation = [child for each in generation for child in children.get(each, ())]
    return found

"""stringd: a local daemon through which AI agents read, run commands and work on tasks.

Names load when they are first used: clients (`from stringd import String`), and agents and flows
for programs (`from stringd import Agent, Sequential, run`).
"""

# `string` passes through here, and must start faster than `typing` can be imported.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from stringd.client import AsyncGate, AsyncRuns, AsyncString, Gate, Runs, String
    from stringd.library import (
        Agent,
        Broadcast,
        Cycle,
        Person,
        Sequential,
        follow,
        read_strategy,
        run,
        run_async,
        tool,
    )

__version__ = "0.1.0"

_CLIENTS = ("AsyncGate", "AsyncRuns", "AsyncString", "Gate", "Runs", "String")
__all__ = [
    "Agent",
    "AsyncGate",
    "AsyncRuns",
    "AsyncString",
    "Broadcast",
    "Cycle",
    "Gate",
    "Person",
    "Runs",
    "Sequential",
    "String",
    "__version__",
    "follow",
    "read_strategy",
    "run",
    "run_async",
    "tool",
]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name in _CLIENTS:
        from stringd import client

        return getattr(client, name)
    from stringd import library

    return getattr(library, name)

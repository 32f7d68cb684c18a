"""stringd: a local daemon through which AI agents read, run commands and work on tasks.

The clients load when they are first used: `from stringd import String`.
"""

# `string` passes through here, and must start faster than `typing` can be imported.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from stringd.client import AsyncGate, AsyncRuns, AsyncString, Gate, String

__version__ = "0.1.0"

__all__ = ["AsyncGate", "AsyncRuns", "AsyncString", "Gate", "String", "__version__"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from stringd import client

    return getattr(client, name)

"""Clients of the three wires. Names load when they are first used.

`String` and `AsyncString` run commands, `Gate` and `AsyncGate` ask the human for one,
`Runs` and `AsyncRuns` start and follow runs.
"""

# `string` passes through here, and must start faster than `typing` can be imported.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from stringd.client.async_runs import AsyncRuns, RunFailedError, RunHandle
    from stringd.client.async_string import AsyncString
    from stringd.client.blocking_runs import FollowedRun, Runs
    from stringd.client.errors import (
        CommandFailed,
        QueueFull,
        QueueTimeout,
        RequestRefusedError,
        StreamIncomplete,
        StringClientError,
    )
    from stringd.client.gate import AsyncGate, Gate, GateClientError
    from stringd.client.http import StrangerError, TransportError
    from stringd.client.runs import RequestFailedError, RunsError, UnreachableError
    from stringd.client.string import String
    from stringd.client.values import ExecResult, Health, OpenDocument, RegisteredUser, TopicState

__all__ = [
    "AsyncGate",
    "AsyncRuns",
    "AsyncString",
    "CommandFailed",
    "ExecResult",
    "FollowedRun",
    "Gate",
    "GateClientError",
    "Health",
    "OpenDocument",
    "QueueFull",
    "QueueTimeout",
    "RegisteredUser",
    "RequestFailedError",
    "RequestRefusedError",
    "RunFailedError",
    "RunHandle",
    "Runs",
    "RunsError",
    "StrangerError",
    "StreamIncomplete",
    "String",
    "StringClientError",
    "TopicState",
    "TransportError",
    "UnreachableError",
]

_MODULES = {
    "async_runs": ("AsyncRuns", "RunFailedError", "RunHandle"),
    "async_string": ("AsyncString",),
    "blocking_runs": ("FollowedRun", "Runs"),
    "errors": (
        "CommandFailed",
        "QueueFull",
        "QueueTimeout",
        "RequestRefusedError",
        "StreamIncomplete",
        "StringClientError",
    ),
    "gate": ("AsyncGate", "Gate", "GateClientError"),
    "http": ("StrangerError", "TransportError"),
    "runs": ("RequestFailedError", "RunsError", "UnreachableError"),
    "string": ("String",),
    "values": ("OpenDocument", "ExecResult", "Health", "TopicState", "RegisteredUser"),
}
_PLACES = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> object:
    from importlib import import_module

    module = _PLACES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{module}"), name)

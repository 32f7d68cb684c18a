"""Runs: strategies executed by agents, seen and steered by people. This is the room's door.

What is behind it is loaded when it is first used: most commands need little of this room.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stringd.runs.engine.config import RunsConfig
    from stringd.runs.service import RunService

__all__ = ["RunService", "RunsConfig"]


def __getattr__(name: str) -> Any:
    if name == "RunService":
        from stringd.runs.service import RunService

        return RunService
    if name == "RunsConfig":
        from stringd.runs.engine.config import RunsConfig

        return RunsConfig
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

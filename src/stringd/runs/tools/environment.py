"""The environment of what an agent starts, with the agent's own additions."""

import os
from collections.abc import Mapping

from stringd.runs.tools.output import ToolFailure
from stringd.system import environment


def child_environment(extra: Mapping[str, str]) -> dict[str, str]:
    """What a child gets, with the caller's own additions. Raises `ToolFailure`."""
    for name, value in extra.items():
        if not environment.is_name(name) or "\0" in value:
            raise ToolFailure("command_failed", f"Not an environment variable: {name!r}")
        if not environment.may_add(environment.AGENT, name):
            raise ToolFailure("command_failed", f"{name} makes the shell run more than the command")
    return {**environment.child_environment(environment.AGENT, os.environ), **extra}

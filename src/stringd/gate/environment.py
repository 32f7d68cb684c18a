"""The one door to a child's environment."""

import os
import pwd
from collections.abc import Mapping

from stringd.gate.resolve import CHILD_PATH
from stringd.gate.validate import ValidatedRequest


def plain_environment(request: ValidatedRequest, own: Mapping[str, str]) -> dict[str, str]:
    """For an unprivileged command: what the request set, our passwd entry and nothing of our own.

    The agent's socket is taken from our own environment, never from the request.
    """
    name, home = account()
    env = dict(request.env)
    env.setdefault("HOME", home)
    env |= {"USER": name, "LOGNAME": name, "PATH": CHILD_PATH}
    if request.forward_agent and (agent := own.get("SSH_AUTH_SOCK")):
        env["SSH_AUTH_SOCK"] = agent
    return env


def account() -> tuple[str, str]:
    """Our own name and home; in a container the number may have neither."""
    try:
        entry = pwd.getpwuid(os.getuid())
    except KeyError:
        return str(os.getuid()), "/"
    return entry.pw_name, entry.pw_dir

"""The one place where the environment of an agent's child processes is made.

It is built from an allow list, so that no key or token of the daemon's own environment can leak.
"""

import os
import re
from collections.abc import Mapping
from typing import Final

from stringd.runs.tools.output import ToolFailure

_KEPT: Final = frozenset(
    (
        "HOME",
        "LANG",
        "LANGUAGE",
        "LOGNAME",
        "PATH",
        "SHELL",
        "TMPDIR",
        "TZ",
        "USER",
        "XDG_CACHE_HOME",
        "XDG_CONFIG_HOME",
        "XDG_DATA_HOME",
    )
)
# Nobody is there to answer a prompt or to leave a pager.
_QUIET: Final = {
    "DEBIAN_FRONTEND": "noninteractive",
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    "PAGER": "cat",
    "TERM": "dumb",
}
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# A shell runs what these hold before the command, unseen by whoever judged the command.
_STARTUP: Final = frozenset(("BASH_ENV", "BASHOPTS", "ENV", "PS4", "SHELLOPTS"))


def child_environment(extra: Mapping[str, str]) -> dict[str, str]:
    """What a child gets, with the caller's own additions. Raises `ToolFailure`."""
    for name, value in extra.items():
        if not _NAME.fullmatch(name) or "\0" in value:
            raise ToolFailure("command_failed", f"Not an environment variable: {name!r}")
        if name in _STARTUP:
            raise ToolFailure("command_failed", f"{name} makes the shell run more than the command")
    kept = {
        name: value for name, value in os.environ.items() if name in _KEPT or name.startswith("LC_")
    }
    return {"PATH": os.defpath, **kept, **_QUIET, **extra}

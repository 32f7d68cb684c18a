"""The keys of model providers, which leave the daemon's environment when it starts.

What is in the environment of a process can be read by others of the account, and by root whatever
the process asks for. So a daemon moves the keys into its memory, and what needs one asks here.
"""

import os
import sys
from collections import ChainMap
from collections.abc import Mapping
from typing import Final

from stringd.system.environment import PROVIDER_KEYS

_taken: Final[dict[str, str]] = {}
# Where the kernel says the first environment of the process is, counted after the program's name.
_ENV_START: Final = 47


def take_provider_keys() -> None:
    """Move the keys out of this process's environment; called once, before anything is started."""
    names = [name for name in os.environ if PROVIDER_KEYS.fullmatch(name)]
    entries = [os.fsencode(f"{name}={os.environ[name]}") for name in names]
    for name in names:
        _taken[name] = os.environ.pop(name)
    if entries and sys.platform == "linux":
        _erase(entries)


def with_provider_keys() -> Mapping[str, str]:
    """The environment as the daemon's owner set it, keys included; never for a child."""
    return ChainMap(os.environ, _taken)


def _erase(entries: list[bytes]) -> None:
    """Overwrite what the kernel keeps showing of the environment the process began with."""
    import ctypes

    try:
        with open("/proc/self/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
        start, end = map(int, fields[_ENV_START : _ENV_START + 2])
    except (OSError, ValueError):
        return
    if not 0 < start < end:
        return
    content = ctypes.string_at(start, end - start)
    at = 0
    for entry in content.split(b"\0"):
        if entry in entries:
            ctypes.memset(start + at, 0, len(entry))
        at += len(entry) + 1

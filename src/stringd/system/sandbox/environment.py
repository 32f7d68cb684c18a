"""Variables that would act on the walls themselves before they act on the command."""

import os
from collections.abc import Mapping
from typing import Final, NamedTuple

_LOADER: Final = ("LD_", "GLIBC_", "MALLOC_", "GCONV_", "LOCPATH", "NLSPATH", "BASH_FUNC_")
_SHELL: Final = frozenset(
    ("BASH_ENV", "BASHOPTS", "ENV", "IFS", "PS4", "SHELLOPTS", "CDPATH", "PATH")
)
# Where the programs that make the walls are found, whatever the command's own PATH names.
_SYSTEM_PATH: Final = f"{os.defpath}:/run/current-system/sw/bin"
_TEMPORARY: Final = frozenset(("TMPDIR", "TMP", "TEMP"))


class Parted(NamedTuple):
    outside: dict[str, str]
    """For the process that makes the walls."""
    inside: dict[str, str]
    """Set again for the command, behind them."""


def part(environment: Mapping[str, str]) -> Parted:
    """A library or program that the command chose would run outside the walls it helps to make."""
    outside = {"PATH": _SYSTEM_PATH}
    inside: dict[str, str] = {}
    for name, value in environment.items():
        if name in _TEMPORARY:
            # It names a directory the command may not write to; inside there is another one.
            continue
        acts = name.startswith(_LOADER) or name in _SHELL
        (inside if acts else outside)[name] = value
    return Parted(outside, inside)

"""Programs of another account of this machine, for tests that run as root."""

import os
import subprocess
import sys
from typing import Final

import pytest

STRANGER: Final = 47113
"""An account of its own, without a name: nothing on the machine belongs to it."""

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another account")

_BECOME: Final = f"""\
import os, socket, sys
"".encode("idna")
os.setgroups([])
os.setgid({STRANGER})
os.setuid({STRANGER})
"""


def as_stranger(code: str, *arguments: object, keep: int | None = None) -> "subprocess.Popen[str]":
    """Run Python code as that account; `os`, `socket` and `sys` are imported already.

    The interpreter starts as root and loads what it needs, because ours may be installed where
    others cannot read. `keep` is a descriptor it inherits.
    """
    return subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", _BECOME + code, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        pass_fds=() if keep is None else (keep,),
    )

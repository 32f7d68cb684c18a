"""Which walls this machine can make: tried once, for real, and remembered."""

import asyncio
import os
import shutil
import subprocess
import sys
from functools import cache
from typing import Final, NamedTuple

from stringd.system.sandbox.bubblewrap import BASH, Bubblewrap, bubblewrap_argv
from stringd.system.sandbox.landlock import Landlock, landlock_argv
from stringd.system.sandbox.launcher import kernel
from stringd.system.sandbox.launcher.seccomp import ARCHITECTURES
from stringd.system.sandbox.spec import SandboxSpec
from stringd.system.sandbox.view import MountAccess, ViewEntry

TRIAL_SECONDS: Final = 10.0
_PLACES: Final = ("/usr/bin", "/usr/local/bin", "/bin", "/run/current-system/sw/bin")
_MINIMAL: Final = {"PATH": os.defpath}
INSTALL: Final = "install bubblewrap (the package has that name)"


class Nothing(NamedTuple):
    """No walls here; the reason is a sentence for a person."""

    reason: str


Walls = Bubblewrap | Landlock | Nothing


@cache
def available() -> Walls:
    """The best walls that work here. The first call starts a few short processes."""
    if sys.platform != "linux":
        return Nothing("Sandboxes need Linux")
    if os.uname().machine not in ARCHITECTURES:
        return Nothing(f"Sandboxes are not made for {os.uname().machine} processors")
    bubblewrap = working_bubblewrap()
    if isinstance(bubblewrap, Bubblewrap):
        return bubblewrap
    landlock = working_landlock()
    if isinstance(landlock, Landlock):
        return landlock
    return Nothing(f"{bubblewrap.reason}. {landlock.reason}")


async def find_available() -> Walls:
    """The same without holding up an event loop."""
    return await asyncio.to_thread(available)


def working_bubblewrap() -> Bubblewrap | Nothing:
    """bubblewrap, if it is installed and the kernel lets this account use it."""
    places = [*_PLACES, *(each for each in os.get_exec_path() if each.startswith("/"))]
    program = shutil.which("bwrap", path=os.pathsep.join(places))
    if program is None:
        return Nothing("bubblewrap is not installed")
    if not os.access(BASH, os.X_OK):
        return Nothing(f"{BASH} cannot be run")
    keeper = shutil.which("setpriv", path=os.pathsep.join(_PLACES)) or ""
    complaint = ""
    for locks in (True, False):
        walls = Bubblewrap(program, os.uname().machine, locks, keeper)
        entries = (ViewEntry("/tmp", MountAccess.OWN, True),)  # noqa: S108 - the sandbox's own
        argv = bubblewrap_argv(walls, SandboxSpec(), entries, ["true"], variables={}, group=None)
        complaint = _complaint(argv)
        if not complaint:
            return walls
    return Nothing(f"bubblewrap does not work for this account ({complaint})")


def working_landlock() -> Landlock | Nothing:
    """Landlock, if the kernel has it switched on and the launcher works."""
    version = kernel.landlock_version()
    if version == 0:
        return Nothing("The kernel has no Landlock")
    complaint = ""
    for freezes in (True, False):
        walls = Landlock(version, freezes)
        argv = landlock_argv(walls, SandboxSpec(), (), ["true"], variables={}, group=None)
        complaint = _complaint(argv)
        if not complaint:
            return walls
    return Nothing(f"Landlock does not work for this account ({complaint})")


def _complaint(argv: list[str]) -> str:
    """What a trial said when it failed; empty when it worked."""
    try:
        done = subprocess.run(
            argv,
            env=_MINIMAL,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=TRIAL_SECONDS,
            check=False,
            cwd="/",
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if done.returncode == 0:
        return ""
    lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
    return lines[-1] if lines else f"exit code {done.returncode}"

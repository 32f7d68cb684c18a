"""Limits on everything inside: by control group where one is ours to make, else by the shell."""

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from stringd.system.sandbox.spec import Limits

PREFIX: Final = "stringd-sandbox-"
MOUNT: Final = Path("/sys/fs/cgroup")
_NEEDED: Final = frozenset(("memory", "pids"))
_KIB: Final = 1024
_YOUNG_SECONDS: Final = 60.0


class Group(NamedTuple):
    """A control group to make: its path, and the files to write before entering it."""

    path: str
    limits: tuple[tuple[str, str], ...]


def group_settings(limits: Limits) -> tuple[tuple[str, str], ...]:
    """What to write into a group's files."""
    found: list[tuple[str, str]] = []
    if limits.processes is not None:
        found.append(("pids.max", str(limits.processes)))
    if limits.memory is not None:
        found += [("memory.max", str(limits.memory)), ("memory.swap.max", "0")]
    return tuple(found)


def lower_limits(limits: Limits, *, grouped: bool) -> str:
    """Text for a shell inside that lowers what a process may use; a group does most of it.

    Inside, the kernel counts only the processes of this sandbox. The number for data leaves alone
    the address space that some runtimes reserve and never use.
    """
    # A limit that is already lower cannot be raised to this one, and need not be.
    return "; ".join(f"{{ {step}; }} 2>/dev/null" for step in _steps(limits, grouped=grouped))


def _steps(limits: Limits, *, grouped: bool) -> Iterator[str]:
    if limits.processes is not None and not grouped:
        # Shells disagree on the letter.
        yield f"ulimit -u {limits.processes} || ulimit -p {limits.processes}"
    if limits.memory is not None and not grouped:
        yield f"ulimit -d {limits.memory // _KIB}"
    if limits.cpu_seconds is not None:
        yield f"ulimit -t {limits.cpu_seconds}"


def delegated_parent(mount: Path = MOUNT, own: Path = Path("/proc/self/cgroup")) -> Path | None:
    """The nearest control group below which this account may make limited ones."""
    try:
        lines = own.read_text("ascii").splitlines()
    except OSError:
        return None
    mine = next((line[3:] for line in lines if line.startswith("0::")), None)
    if mine is None:
        return None
    group = mount / mine.lstrip("/")
    for each in (group, *group.parents):
        if not each.is_relative_to(mount):
            return None
        if _can_limit(each):
            return each
    return None


def sweep(parent: Path) -> None:
    """Remove the groups of sandboxes that have ended; one that is in use cannot be removed."""
    for group in parent.glob(f"{PREFIX}*"):
        try:
            # A young one may not have been entered yet.
            if time.time() - group.stat().st_mtime > _YOUNG_SECONDS:
                group.rmdir()
        except OSError:
            continue


def _can_limit(group: Path) -> bool:
    try:
        passed_on = set((group / "cgroup.subtree_control").read_text("ascii").split())
    except OSError:
        return False
    writable = (group, group / "cgroup.procs")
    return passed_on >= _NEEDED and all(os.access(path, os.W_OK) for path in writable)

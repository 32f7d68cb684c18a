"""What `doctor`, the page and the first prompt say about the sandbox of this machine."""

import os
from typing import Any, NamedTuple

from stringd.system.sandbox.bubblewrap import Bubblewrap
from stringd.system.sandbox.enclose import group_parent
from stringd.system.sandbox.landlock import Landlock
from stringd.system.sandbox.launcher.rules import GUARDS_TRUNCATION
from stringd.system.sandbox.walls import INSTALL, Nothing, Walls, available


class Report(NamedTuple):
    """`sentence` is for a person, `facts` for JSON; `fix` says what to do where it is not best."""

    sentence: str
    fix: str | None
    facts: dict[str, Any]


def report(walls: Walls | None = None) -> Report:
    """About the walls given, or those of this machine."""
    walls = available() if walls is None else walls
    if isinstance(walls, Nothing):
        sentence = f"Commands run without a sandbox. {walls.reason}."
        return Report(sentence, INSTALL, {"walls": "none", "reason": walls.reason})
    facts = _facts(walls)
    if isinstance(walls, Bubblewrap):
        return Report(f"Commands run in bubblewrap ({walls.program}).", None, facts)
    weaker = "they have no /tmp of their own"
    if not walls.freezes:
        weaker += ", and can change permissions and times of your files"
    sentence = f"Commands run behind Landlock (version {walls.version}) and seccomp; {weaker}."
    return Report(sentence, f"for stronger walls, {INSTALL}", facts)


def _facts(walls: Bubblewrap | Landlock) -> dict[str, Any]:
    bubblewrap = isinstance(walls, Bubblewrap)
    facts: dict[str, Any] = {
        "walls": "bubblewrap" if bubblewrap else "landlock",
        "ownTemporaryDirectory": bubblewrap,
        "ownProcessList": bubblewrap,
        "keepsPermissionsAndTimes": isinstance(walls, Bubblewrap) or walls.freezes,
        "limits": _limits(bubblewrap=bubblewrap),
    }
    if isinstance(walls, Landlock):
        facts["version"] = walls.version
        facts["keepsSignalsIn"] = walls.keeps_signals_in
        facts["guardsTruncationItself"] = walls.version >= GUARDS_TRUNCATION
    else:
        facts["program"] = walls.program
        facts["locksNamespaces"] = walls.locks_namespaces
    return facts


def _limits(*, bubblewrap: bool) -> dict[str, str]:
    """By what each limit is kept."""
    if group_parent() is not None:
        return {"processes": "cgroup", "memory": "cgroup", "cpu": "each process"}
    counted = "sandbox" if bubblewrap else "account"
    # The kernel exempts root from the limit on processes.
    processes = "none" if os.geteuid() == 0 else counted
    return {"processes": processes, "memory": "each process", "cpu": "each process"}

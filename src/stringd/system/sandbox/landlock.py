"""A sandbox spec as arguments for the launcher. Nothing here touches the machine."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from stringd.system.sandbox.launcher import rules
from stringd.system.sandbox.limits import Group
from stringd.system.sandbox.programs import INTERPRETER
from stringd.system.sandbox.spec import SandboxSpec
from stringd.system.sandbox.view import MountAccess, ViewEntry


class Landlock(NamedTuple):
    """The kernel has Landlock; `version` is what it calls the ABI."""

    version: int
    freezes: bool
    """A command can be given read-only mounts as well, which keep permissions and times too."""

    @property
    def keeps_signals_in(self) -> bool:
        return rules.scopes(self.version) != 0


_START: Final = (
    "import sys;sys.path.insert(0,sys.argv.pop(1));from launcher.main import main;main()"
)
_KINDS: Final = {
    MountAccess.OWN: rules.HIDDEN,
    MountAccess.HIDDEN: rules.HIDDEN,
    MountAccess.READ: rules.READ,
    MountAccess.WRITE: rules.WRITE,
}


def landlock_argv(
    walls: Landlock,
    spec: SandboxSpec,
    entries: Sequence[ViewEntry],
    command: Sequence[str],
    *,
    variables: Mapping[str, str],
    group: Group | None,
    python: str = INTERPRETER,
) -> list[str]:
    """`variables` are set inside; `group` is a control group for the launcher to make and enter."""
    asked = [f"{_KINDS[entry.access]}{entry.path}" for entry in entries]
    asked.append(f"network={spec.network}")
    asked += [f"set={name}={value}" for name, value in variables.items()]
    if spec.way_out is not None:
        asked += [f"proxy={spec.way_out.proxy}", f"direct={','.join(spec.way_out.direct)}"]
    if walls.freezes:
        asked.append("freeze")
    if spec.terminal:
        asked.append("terminal")
    if spec.keeps_jobs:
        asked.append("keep-jobs")
    if spec.temporary is not None:
        asked.append(f"temporary={spec.temporary}")
    if spec.limits.cpu_seconds is not None:
        asked.append(f"cpu={spec.limits.cpu_seconds}")
    asked += _limits(spec) if group is None else _group(group)
    start = [python, "-I", "-S", "-c", _START, str(Path(__file__).parent)]
    return [*start, *asked, "--", *command]


def _limits(spec: SandboxSpec) -> list[str]:
    wanted = {"processes": spec.limits.processes, "memory": spec.limits.memory}
    return [f"{name}={value}" for name, value in wanted.items() if value is not None]


def _group(group: Group) -> list[str]:
    return [f"cgroup={group.path}", *(f"limit={name}={value}" for name, value in group.limits)]

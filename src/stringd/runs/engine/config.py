"""What a daemon gives the tools of its runs: the same for every one of them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from stringd.runs.agents.extensions import Registry
from stringd.runs.guard.budget import RunLimits
from stringd.runs.guard.commands import DANGEROUS, approval
from stringd.runs.guard.guards import GuardDefaults
from stringd.runs.mcp.servers import McpPool
from stringd.runs.tools.context import DaemonPorts


@dataclass(frozen=True)
class Equipment:
    """`approve_commands` are expressions of commands to ask about.

    `prompt_seconds` is how long a human may take to answer; None is for ever.
    """

    data_dir: Path
    ports: DaemonPorts = field(default_factory=DaemonPorts)
    limits: RunLimits = field(default_factory=RunLimits)
    approve_commands: Sequence[str] = ()
    prompt_seconds: float | None = None
    max_depth: int = 8
    pool: McpPool = field(default_factory=McpPool)

    def guard_defaults(self, cwd: Path) -> GuardDefaults:
        """What every guard of a run in this workspace starts with. Raises `re.error`."""
        return _guard_defaults(self.data_dir, cwd, tuple(self.approve_commands))


@lru_cache(maxsize=64)
def _guard_defaults(data_dir: Path, cwd: Path, approve: tuple[str, ...]) -> GuardDefaults:
    return GuardDefaults(
        forbidden_places=_forbidden(data_dir, cwd), commands=(DANGEROUS, approval(approve))
    )


def _forbidden(data_dir: Path, cwd: Path) -> tuple[Path, ...]:
    """The daemon's own state; a workspace that lies in it keeps only the secrets out."""
    data, work = data_dir.resolve(), cwd.resolve()
    secrets = (data / "credentials.json", data / "runs")
    return secrets if work == data or data in work.parents else (data,)


@dataclass(frozen=True)
class Surroundings:
    """What the daemon brings: where it works, and defaults for every run."""

    data_dir: Path
    project_dir: Path
    registry: Registry
    equipment: Equipment
    model_override: str | None = None

"""How a daemon's runs work: everything its owner decided, the same for every one of them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from stringd.runs.agents.extensions import Registry
from stringd.runs.engine.observer import RunObserver, UnobservedRuns
from stringd.runs.engine.remembered import StrategyMemory
from stringd.runs.guard.budget import RunLimits
from stringd.runs.guard.commands import DANGEROUS, approval
from stringd.runs.guard.guards import GuardDefaults
from stringd.runs.strategy.files import DEFINITIONS, StrategyFiles
from stringd.runs.tools.built_in import shell_tools
from stringd.runs.tools.context import DaemonPorts
from stringd.system.data_directory import MARKER
from stringd.system.sandbox import Level
from stringd.system.trust import TrustStore


@dataclass(frozen=True)
class RunsConfig:
    """`project_dir` is where a run works that names no directory.

    `registry` holds what code registered for every run, `trust` what the owner trusts of other
    people's files, `ports` the ways into the rest of the daemon. `approve_commands` are
    expressions of commands to ask about. `prompt_seconds` is how long a human may take to answer;
    None is for ever. `max_running` None is unlimited. `keep_events` is how many completed runs keep
    their events; None is a thousand. `max_depth` is how deep strategies may launch each other.
    `sandbox` is how far commands reach before somebody is asked, `observer` hears of every run,
    `parallel_tools` is how many tool calls of one answer of a model may work at once.
    """

    data_dir: Path
    project_dir: Path
    registry: Registry = field(default_factory=Registry)
    trust: TrustStore = field(default_factory=TrustStore)
    ports: DaemonPorts = field(default_factory=DaemonPorts)
    limits: RunLimits = field(default_factory=RunLimits)
    model_override: str | None = None
    template_filters: frozenset[str] = frozenset()
    concurrent_broadcast: bool = False
    approve_commands: Sequence[str] = ()
    prompt_seconds: float | None = None
    max_depth: int = 8
    max_running: int | None = None
    keep_events: int | None = None
    use_keyring: bool = False
    catalog_url: str | None = None
    sandbox: Level = Level.WORKSPACE
    observer: RunObserver = field(default_factory=UnobservedRuns)
    parallel_tools: int = 8
    memory: StrategyMemory = field(default_factory=StrategyMemory, compare=False)

    def files(self) -> StrategyFiles:
        """A look at strategies and what belongs to them, as they are now."""
        return StrategyFiles(self.data_dir, self.trust)

    def guard_defaults(self, cwd: Path) -> GuardDefaults:
        """What every guard of a run in this workspace starts with. Raises `re.error`."""
        return _guard_defaults(self.data_dir, cwd, self.trust.file, tuple(self.approve_commands))


@lru_cache(maxsize=64)
def _guard_defaults(
    data_dir: Path, cwd: Path, trust: Path, approve: tuple[str, ...]
) -> GuardDefaults:
    return GuardDefaults(
        forbidden_places=(*_forbidden(data_dir, cwd), trust.resolve()),
        commands=(DANGEROUS, approval(approve)),
        shells=shell_tools(),
    )


def _forbidden(data_dir: Path, cwd: Path) -> tuple[Path, ...]:
    """The daemon's own state. A workspace inside it keeps out secrets and the owner's word."""
    data, work = data_dir.resolve(), cwd.resolve()
    if work != data and data not in work.parents:
        return (data,)
    return tuple(data / name for name in ("credentials.json", "runs", MARKER, *DEFINITIONS))

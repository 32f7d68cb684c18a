"""A strategy that runs inside a tool call of another: seen under its run, kept nowhere else."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from stringd.runs.agents.agent import Agent
from stringd.runs.engine.capabilities import Abilities
from stringd.runs.engine.config import Surroundings
from stringd.runs.engine.loading import check_skills, load, load_project
from stringd.runs.engine.run import Prepared, RunSettings
from stringd.runs.engine.segment import Segment
from stringd.runs.errors import ExecutionError
from stringd.runs.guard.errors import Denied
from stringd.runs.guard.guards import RunGuards
from stringd.runs.mcp.definitions import definitions
from stringd.runs.mcp.servers import check_servers
from stringd.runs.record.events import TimelineEvent
from stringd.runs.record.recorder import Ledger
from stringd.runs.record.resume import Journal
from stringd.runs.strategy import definition as d
from stringd.runs.strategy.discover import PROJECT_FOLDERS, discover
from stringd.runs.strategy.load import prompt_files
from stringd.runs.strategy.project import read_manifest
from stringd.runs.strategy.skills import find_skills
from stringd.runs.tools.context import Launched
from stringd.wire.runs.types import (
    AgentCallResult,
    ConversationHistory,
    ConversationRecord,
    RetentionEvent,
)

_NOTHING: Final = Abilities()


class _FoundStrategy(NamedTuple):
    """The file of a strategy. `owned` is one that agents cannot have put where it is."""

    path: str
    manifest: Path | None = None
    owned: bool = False


class Launcher:
    """What `launch_strategy` does in one segment. `above` is what those who launched it may use."""

    def __init__(self, parent: Segment, above: Abilities = _NOTHING) -> None:
        self._parent = parent
        self._may = above.with_those_of(parent.prepared.strategy)

    async def __call__(
        self, agent_name: str, name: str, message: str, model_override: str | None
    ) -> Launched:
        """Run a strategy to its end. Raises `RunsError` or `Denied`."""
        parent = self._parent
        limit = parent.prepared.equipment.max_depth
        if parent.depth >= limit:
            raise ExecutionError(f"Strategies may launch each other {limit} deep, not deeper")
        found = await self._find(agent_name, name)
        await self._allow(agent_name, found, await asyncio.to_thread(_code_of, found.manifest))
        prepared = await asyncio.to_thread(
            self._prepare, found.path, found.manifest, model_override
        )
        self._check_place(prepared.strategy.path, found.path)
        lacking = self._may.lacking(prepared.strategy, prepared.servers)
        await self._allow(agent_name, found, lacking)
        cwd = Path(prepared.settings.cwd)
        pool = prepared.equipment.pool
        prepared.mcp = await pool.connect(prepared.servers, prepared.strategy, cwd, None)
        child = ChildSegment(parent, prepared, message)
        child.desk.launch = Launcher(child, self._may)
        try:
            text = await child.execute(message)
        finally:
            parent.usage += child.usage
            prepared.mcp.close()
        return Launched(prepared.strategy.name, prepared.strategy.path, text, "stop")

    async def _allow(self, agent_name: str, found: _FoundStrategy, uses: Sequence[str]) -> None:
        """A yes for what nobody in the run may use, in a file one of them may have written.

        Raises `Denied`.
        """
        if uses and self._may.write and not found.owned:
            why = f"it uses {', '.join(uses)}, which no agent of this run may"
            permissions = self._parent.desk.permissions
            await permissions.more(agent_name, "launch_strategy", found.path, {"why": [why]})

    async def _find(self, agent_name: str, name: str) -> _FoundStrategy:
        """The file of a strategy: by name first, else as a path the agent may read."""
        desk = self._parent.desk
        cwd = desk.permissions.workspace.cwd
        found = await asyncio.to_thread(discover, cwd, desk.data_dir)
        for each in found.strategies:
            if each.name == name and each.origin.startswith("cwd"):
                return _FoundStrategy(
                    await self._readable(agent_name, str(each.path)), each.manifest
                )
            if each.name == name:
                return _FoundStrategy(str(each.path), each.manifest, owned=True)
        if name.startswith("@"):
            return _FoundStrategy(name, owned=True)
        return _FoundStrategy(await self._readable(agent_name, name))

    async def _readable(self, agent_name: str, path: str) -> str:
        """The real path of a file anybody may have put there, once it and its prompts may be read.

        Raises `Denied`.
        """
        permissions = self._parent.desk.permissions
        place = await permissions.path(agent_name, "launch_strategy", "read", path)
        for prompt in await asyncio.to_thread(prompt_files, place.real):
            await permissions.path(agent_name, "launch_strategy", "read", str(prompt))
        return str(place.real)

    def _check_place(self, loaded: Path, wanted: str) -> None:
        """What was loaded must still be where it was allowed; it may have become a link."""
        if str(loaded) == wanted and str(loaded.resolve()) != wanted:
            raise Denied(f"{wanted} changed while it was being opened")

    def _prepare(self, path: str, manifest: Path | None, model_override: str | None) -> Prepared:
        mine = self._parent.prepared
        equipment, cwd = mine.equipment, Path(mine.settings.cwd)
        override = model_override or mine.settings.model_override
        settings = RunSettings(path, mine.settings.cwd, override)
        registry = mine.registry.copy()
        if manifest is not None:
            load_project(manifest, registry)
        around = Surroundings(equipment.data_dir, cwd, registry, equipment)
        strategy = load(settings, registry, around)
        skills = find_skills(equipment.data_dir, cwd, PROJECT_FOLDERS)
        check_skills(strategy, skills)
        servers = definitions(equipment.data_dir, cwd, strategy)
        check_servers(strategy, servers)
        return Prepared(
            kind="new",
            settings=settings,
            strategy=strategy,
            registry=registry,
            conversation=ConversationHistory(),
            journal=Journal(),
            equipment=equipment,
            skills=skills,
            servers=servers,
        )


def _code_of(manifest: Path | None) -> list[str]:
    """What a project would execute. Raises `StrategyFileError`."""
    project = None if manifest is None else read_manifest(manifest)
    return [f"the code of {project.name}"] if project and project.modules else []


class ChildSegment(Segment):
    """Shows its agents to the parent's audience; has no steps, no steering and no timeline."""

    def __init__(self, parent: Segment, prepared: Prepared, message: str) -> None:
        self._first_answer = message
        self._guards_above = parent.desk.permissions.guards
        super().__init__(
            parent.run,
            prepared,
            parent.store,
            parent.models,
            parent.templates,
            concurrent_broadcast=parent.concurrent_broadcast,
        )
        self.depth = parent.depth + 1
        self.desk.budget = parent.desk.budget

    def make_guards(self) -> RunGuards:
        cwd = Path(self.prepared.settings.cwd)
        return RunGuards(self.prepared.equipment.guard_defaults(cwd), self._guards_above)

    def make_ledger(self) -> Ledger:
        return _NoLedger(self.store, self.run.id, Journal().unfinished)

    async def step_started(self, step: d.Step, index: int, path: str, message: str) -> None:
        pass

    async def step_completed(
        self, step: d.Step, index: int, path: str, result: AgentCallResult
    ) -> None:
        pass

    async def steer(self, agent: Agent, message: str, path: str) -> str:  # noqa: ARG002
        return message

    async def steer_between(self, agent: Agent, key: str) -> list[str]:  # noqa: ARG002
        return []

    async def record(self, record: ConversationRecord, path: str) -> None:
        pass

    async def retention(self, event: RetentionEvent) -> None:
        pass

    async def _ask_input(self, agent_name: str, path: str) -> str:
        """The launching agent's input answers the first prompt; later ones go to the human."""
        first, self._first_answer = self._first_answer, ""
        return first or await super()._ask_input(agent_name, path)


class _NoLedger(Ledger):
    """Keeps nothing: the tool call that launched the child is what a resumed run looks at."""

    def _keep(self, event: TimelineEvent) -> None:
        pass

    async def _sync(self) -> None:
        pass

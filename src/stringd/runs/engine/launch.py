"""A strategy that runs inside a tool call of another: seen under its run, kept nowhere else."""

import asyncio
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from stringd.runs.agents.steering import Mailbox
from stringd.runs.engine.capabilities import Abilities
from stringd.runs.engine.loading import load_all
from stringd.runs.engine.run import Prepared, RunSettings
from stringd.runs.engine.segment import Segment, SegmentParts
from stringd.runs.errors import ExecutionError
from stringd.runs.guard.errors import Denied
from stringd.runs.guard.guards import RunGuards
from stringd.runs.record.recorder import InnerRecorder
from stringd.runs.record.resume import Journal
from stringd.runs.strategy.discover import find, find_by_name, find_project
from stringd.runs.strategy.load import prompt_files
from stringd.runs.strategy.project import read_manifest
from stringd.runs.tools.context import Launched
from stringd.wire.runs.types import ConversationHistory

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
        self._config = parent.services.config
        self._may = above.with_those_of(parent.prepared.strategy, parent.prepared.registry)

    async def __call__(
        self, agent_name: str, name: str, message: str, model_override: str | None
    ) -> Launched:
        """Run a strategy to its end. Raises `RunServiceError` or `Denied`."""
        parent = self._parent
        limit = self._config.max_depth
        if parent.depth >= limit:
            raise ExecutionError(
                f"Launch depth limit reached: strategies may be nested {limit} deep"
            )
        found = await self._find(agent_name, name)
        await self._allow(agent_name, found, await asyncio.to_thread(_code_of, found.manifest))
        prepared = await asyncio.to_thread(
            self._prepare, found.path, found.manifest, model_override
        )
        self._check_place(prepared.strategy.path, found.path)
        lacking = self._may.lacking(prepared.strategy, prepared.registry, prepared.servers)
        await self._allow(agent_name, found, lacking)
        cwd = Path(prepared.settings.cwd)
        pool = parent.services.pool
        prepared.mcp = await pool.connect(prepared.servers, prepared.strategy, cwd, None)
        child = self._child(prepared, message, cwd)
        try:
            text = await child.execute(message)
        finally:
            parent.usage += child.usage
            prepared.mcp.close()
        return Launched(prepared.strategy.name, prepared.strategy.path, text, "stop")

    def _child(self, prepared: Prepared, message: str, cwd: Path) -> Segment:
        """The launching agent's message answers the child's first request for input."""
        parent = self._parent
        parts = SegmentParts(
            recorder=InnerRecorder(parent.recorder),
            mailbox=Mailbox(),
            guards=RunGuards(self._config.guard_defaults(cwd), parent.desk.permissions.guards),
            budget=parent.desk.budget,
            depth=parent.depth + 1,
            widest=parent.desk.sandbox.level,
            first_input=message,
        )
        launcher = partial(Launcher, above=self._may)
        return Segment(parent.services, parent.run, prepared, parts, launcher)

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
        found = await asyncio.to_thread(self._parent.desk.discover)
        each = find_by_name([each for each in found.strategies if each.name == name], name)
        if each is not None and not each.origin.startswith("cwd"):
            return _FoundStrategy(str(each.path), each.manifest, owned=True)
        if each is not None:
            readable = await self._readable(agent_name, str(each.path))
            return _FoundStrategy(readable, each.manifest)
        if name.startswith("@"):
            return await self._referenced(agent_name, name)
        return _FoundStrategy(await self._readable(agent_name, name))

    async def _referenced(self, agent_name: str, name: str) -> _FoundStrategy:
        """`@scope/package/strategies/<id>` of the run's own project, or of an installed package."""
        settings, data_dir = self._parent.prepared.settings, self._config.data_dir
        mine = Path(settings.cwd, settings.manifest_path) if settings.manifest_path else None
        project = await asyncio.to_thread(find_project, name, data_dir, mine)
        if mine is None or project != mine:
            return _FoundStrategy(name, owned=True)
        path = await asyncio.to_thread(find, name, Path(settings.cwd), data_dir, mine)
        if self._config.files().is_owned(mine):
            return _FoundStrategy(str(path), mine, owned=True)
        return _FoundStrategy(await self._readable(agent_name, str(path)), mine)

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
        override = model_override or mine.settings.model_override
        settings = RunSettings(path, mine.settings.cwd, override)
        loaded = load_all(settings, manifest, self._config, mine.registry)
        return Prepared(
            kind="new",
            settings=settings,
            strategy=loaded.strategy,
            registry=loaded.registry,
            conversation=ConversationHistory(),
            journal=Journal(),
            skills=loaded.skills,
            servers=loaded.servers,
        )


def _code_of(manifest: Path | None) -> list[str]:
    """What a project would execute. Raises `StrategyFileError`."""
    project = None if manifest is None else read_manifest(manifest)
    return [f"the code of {project.name}"] if project and project.modules else []

"""`list_mcp_servers` and `update_mcp_server`."""

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import UNSET

from stringd.runs.engine.config import RunsConfig
from stringd.runs.engine.loading import load
from stringd.runs.engine.run import RunSettings
from stringd.runs.errors import RefusedError, RunServiceError
from stringd.runs.handlers.dispatch import Later
from stringd.runs.mcp.definitions import ServerDefinition, definitions, rewrite_default
from stringd.runs.mcp.servers import RunServers, default_selection, status
from stringd.runs.record.store import RunStore, check_run_id
from stringd.runs.record.views import latest_start
from stringd.runs.strategy.definition import Strategy
from stringd.wire.runs import messages, requests
from stringd.wire.runs.types import McpServerStatus

Request = requests.ListMcpServers | requests.UpdateMcpServer


class Scene(NamedTuple):
    """What a request is about: the servers known there, and the run's own, when it is prepared."""

    known: dict[str, ServerDefinition]
    strategy: Strategy | None
    prepared: RunServers | None


class McpHandlers:
    """`prepared` finds the servers of a run that is prepared."""

    def __init__(
        self,
        config: RunsConfig,
        store: RunStore,
        prepared: Callable[[str], RunServers | None],
    ) -> None:
        self._config = config
        self._data_dir = config.data_dir
        self._project_dir = config.project_dir
        self._store = store
        self._prepared = prepared

    def handlers(self) -> Mapping[type, Later]:
        return {requests.ListMcpServers: self._list, requests.UpdateMcpServer: self._update}

    async def _list(self, request: requests.ListMcpServers, _client: Any) -> messages.Message:
        try:
            return messages.McpServerList(servers=await asyncio.to_thread(self._found, request))
        except (RunServiceError, OSError) as error:
            raise RefusedError("MCP_LIST_FAILED", str(error)) from error

    async def _update(self, request: requests.UpdateMcpServer, _client: Any) -> messages.Message:
        try:
            await asyncio.to_thread(self._change, request)
            return messages.McpServerList(servers=await asyncio.to_thread(self._found, request))
        except (RunServiceError, OSError) as error:
            raise RefusedError("MCP_UPDATE_FAILED", str(error)) from error

    def _found(self, request: Request) -> list[McpServerStatus]:
        scene = self._scene(request)
        enabled = self._selection(request, scene)
        if scene.prepared is not None:
            now = scene.prepared.statuses(every=True)
            for each in now:
                each.enabled = each.id in enabled
                each.enabled_by_default = scene.known[each.id].enabled_by_default
            return now
        return [status(each, scene.strategy, enabled) for each in scene.known.values()]

    def _scene(self, request: Request) -> Scene:
        if request.run_id is not UNSET:
            check_run_id(request.run_id)
        prepared = self._prepared(request.run_id) if request.run_id else None
        if prepared is not None:
            current = self._definitions(prepared.cwd, prepared.strategy)
            return Scene({**prepared.known, **current}, prepared.strategy, prepared)
        start = latest_start(self._store.timeline(request.run_id)) if request.run_id else None
        cwd = Path(request.cwd or (start.cwd if start else self._project_dir))
        path = request.strategy_path or (start.strategy_path if start else None)
        strategy = self._load(path, cwd) if path else None
        return Scene(self._definitions(cwd, strategy), strategy, None)

    def _load(self, path: str, cwd: Path) -> Strategy:
        # Servers are the same whatever the model, so one that is always there will do.
        settings = RunSettings(path, str(cwd), "demo/echo")
        return load(settings, self._config.registry, self._data_dir, self._config.files())

    def _definitions(self, cwd: Path, strategy: Strategy | None) -> dict[str, ServerDefinition]:
        return definitions(self._data_dir, cwd, strategy, self._config.files())

    def _selection(self, request: Request, scene: Scene) -> list[str]:
        chosen = self._store.selection(request.run_id) if request.run_id is not UNSET else None
        return default_selection(scene.known) if chosen is None else chosen

    def _change(self, request: requests.UpdateMcpServer) -> None:
        scene = self._scene(request)
        definition = scene.known.get(request.server_id)
        if definition is None:
            raise RefusedError("MCP_UPDATE_FAILED", f"Unknown MCP server: {request.server_id}")
        if request.scope == "run":
            self._choose(request, scene)
        elif definition.source == "strategy":
            message = f"MCP server {request.server_id} belongs to the strategy; change it there"
            raise RefusedError("MCP_UPDATE_FAILED", message)
        else:
            rewrite_default(definition, enabled=request.enabled)

    def _choose(self, request: requests.UpdateMcpServer, scene: Scene) -> None:
        if request.run_id is UNSET:
            raise RefusedError("MCP_UPDATE_FAILED", "A change for one run needs its runId")
        chosen = [each for each in self._selection(request, scene) if each != request.server_id]
        added = [request.server_id] if request.enabled else []
        self._store.save_selection(request.run_id, [*chosen, *added])

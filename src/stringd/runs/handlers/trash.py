"""`trash_list`, `trash_restore` and `trash_clear`: what file tools took away."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

from stringd.runs.handlers.client import ConnectedClient
from stringd.runs.handlers.dispatch import Later
from stringd.runs.tools.trash import Trash
from stringd.wire.runs import messages, requests
from stringd.wire.runs.catalog import TrashWorkspace


class TrashHandlers:
    """`project_dir` is meant where a request names no directory."""

    def __init__(self, data_dir: Path, project_dir: Path) -> None:
        self._data_dir = data_dir
        self._project_dir = project_dir

    def handlers(self) -> Mapping[type, Later]:
        return {
            requests.TrashList: self._trash_list,
            requests.TrashRestore: self._trash_restore,
            requests.TrashClear: self._trash_clear,
        }

    async def _trash_list(
        self, request: requests.TrashList, _client: ConnectedClient
    ) -> messages.Message:
        cwd = request.cwd or str(self._project_dir)
        entries = await asyncio.to_thread(self._trash(cwd).entries)
        return messages.TrashListResult(
            workspaces=[TrashWorkspace(cwd=cwd, entries=entries)] if entries else [],
            total_entries=len(entries),
            total_bytes=sum(entry.size_bytes for entry in entries),
        )

    async def _trash_restore(
        self, request: requests.TrashRestore, _client: ConnectedClient
    ) -> messages.Message:
        trash, target = self._trash(request.cwd), request.target_path
        restored = await asyncio.to_thread(trash.restore, request.trash_path, target or None)
        return messages.TrashRestoreResult(restored=str(restored), from_=request.trash_path)

    async def _trash_clear(
        self, request: requests.TrashClear, _client: ConnectedClient
    ) -> messages.Message:
        trash = self._trash(request.cwd or str(self._project_dir))
        cleared, freed = await asyncio.to_thread(trash.clear)
        return messages.TrashClearResult(cleared=cleared, bytes_freed=freed)

    def _trash(self, cwd: str) -> Trash:
        return Trash(self._data_dir / "trash", self._project_dir / cwd)

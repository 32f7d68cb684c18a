"""Requests beside the runs: strategies at hand, providers, credentials, trash; no hub."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from msgspec import UNSET, UnsetType

from stringd.runs.errors import RefusedError
from stringd.runs.handlers.client import RunsClient
from stringd.runs.models.credentials import (
    ApiKey,
    Credential,
    CustomData,
    OauthToken,
    VaultError,
)
from stringd.runs.models.directory import ProviderDirectory
from stringd.runs.strategy.discover import Found, discover
from stringd.runs.tools.trash import Trash
from stringd.wire.runs import messages, requests
from stringd.wire.runs.catalog import DiscoveredStrategy, StrategyWarning, TrashWorkspace

Handler = Callable[[Any, RunsClient], Awaitable[messages.Message | None]]


class Sideline:
    """Their handlers. `project_dir` is meant where a request names no directory."""

    def __init__(self, data_dir: Path, project_dir: Path, directory: ProviderDirectory) -> None:
        self._data_dir = data_dir
        self._project_dir = project_dir
        self._directory = directory

    def handlers(self) -> dict[type, Handler]:
        return {
            requests.ListProviders: self._list_providers,
            requests.GetAvailableModels: self._available_models,
            requests.RegisterProvider: self._register_provider,
            requests.UnregisterProvider: self._unregister_provider,
            requests.SetCredential: self._set_credential,
            requests.TrashList: self._trash_list,
            requests.TrashRestore: self._trash_restore,
            requests.TrashClear: self._trash_clear,
            requests.DiscoverStrategies: self._discover,
            requests.HubList: _no_hub,
            requests.HubInstall: _no_hub,
            requests.HubUpdate: _no_hub,
            requests.HubRemove: _no_hub,
        }

    async def _list_providers(
        self, request: requests.ListProviders, _client: RunsClient
    ) -> messages.Message:
        found = await self._directory.infos(_given(request.scope), ask=request.live)
        return messages.ProviderList(providers=found)

    async def _available_models(
        self, request: requests.GetAvailableModels, _client: RunsClient
    ) -> messages.Message:
        wanted, scope = _given(request.model_id) or "", _given(request.scope)
        return messages.AvailableModels(models=await self._directory.available(wanted, scope))

    async def _register_provider(
        self, request: requests.RegisterProvider, _client: RunsClient
    ) -> messages.Message:
        self._directory.register(request.provider_id)
        return messages.ProviderRegistered(provider_id=request.provider_id)

    async def _unregister_provider(
        self, request: requests.UnregisterProvider, _client: RunsClient
    ) -> messages.Message:
        self._directory.unregister(request.provider_id)
        return messages.ProviderUnregistered(provider_id=request.provider_id)

    async def _set_credential(
        self, request: requests.SetCredential, _client: RunsClient
    ) -> messages.Message:
        credential = _credential(request)
        try:
            await asyncio.to_thread(
                self._directory.save_credential, request.provider_id, credential
            )
        except VaultError as error:
            raise RefusedError("INTERNAL_ERROR", str(error)) from None
        return messages.CredentialSet(
            provider_id=request.provider_id, credential_type=request.credential_type
        )

    async def _trash_list(
        self, request: requests.TrashList, _client: RunsClient
    ) -> messages.Message:
        cwd = _given(request.cwd) or str(self._project_dir)
        entries = await asyncio.to_thread(self._trash(cwd).entries)
        return messages.TrashListResult(
            workspaces=[TrashWorkspace(cwd=cwd, entries=entries)] if entries else [],
            total_entries=len(entries),
            total_bytes=sum(entry.size_bytes for entry in entries),
        )

    async def _trash_restore(
        self, request: requests.TrashRestore, _client: RunsClient
    ) -> messages.Message:
        trash, target = self._trash(request.cwd), _given(request.target_path)
        restored = await asyncio.to_thread(trash.restore, request.trash_path, target or None)
        return messages.TrashRestoreResult(restored=str(restored), from_=request.trash_path)

    async def _trash_clear(
        self, request: requests.TrashClear, _client: RunsClient
    ) -> messages.Message:
        trash = self._trash(_given(request.cwd) or str(self._project_dir))
        cleared, freed = await asyncio.to_thread(trash.clear)
        return messages.TrashClearResult(cleared=cleared, bytes_freed=freed)

    async def _discover(
        self, request: requests.DiscoverStrategies, _client: RunsClient
    ) -> messages.Message:
        cwd = self._project_dir / (_given(request.cwd) or "")
        found = await asyncio.to_thread(discover, cwd, self._data_dir)
        return messages.DiscoveredStrategies(
            strategies=[_discovered(each) for each in found.strategies],
            warnings=[StrategyWarning(path=str(w.path), reason=w.reason) for w in found.warnings],
        )

    def _trash(self, cwd: str) -> Trash:
        return Trash(self._data_dir / "trash", self._project_dir / cwd)


def _discovered(found: Found) -> DiscoveredStrategy:
    return DiscoveredStrategy(
        name=found.name,
        label=found.label,
        description=found.description or UNSET,
        path=str(found.path),
        origin=found.origin,
        manifest_path=str(found.manifest) if found.manifest else UNSET,
    )


async def _no_hub(_request: requests.RunsRequest, _client: RunsClient) -> messages.Message:
    """This daemon installs no packages of strategies by itself."""
    raise RefusedError("NOT_IMPLEMENTED", "Hub manager is unavailable")


def _given(value: str | UnsetType) -> str | None:
    return None if value is UNSET else value


def _credential(request: requests.SetCredential) -> Credential:
    """Raises `RefusedError` when the secret of its type is missing."""
    match request.credential_type:
        case "api" if request.api_key is not UNSET:
            return ApiKey(request.api_key)
        case "oauth" if request.oauth_token is not UNSET:
            return OauthToken(request.oauth_token)
        case "custom":
            return CustomData({} if request.custom_data is UNSET else request.custom_data)
        case kind:
            field = {"api": "apiKey", "oauth": "oauthToken"}[kind]
            message = f"set_credential of type {kind} needs {field}"
            raise RefusedError("INVALID_MESSAGE", message)

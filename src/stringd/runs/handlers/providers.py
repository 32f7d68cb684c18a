"""`list_providers`, `get_available_models`, providers registered by hand, and their credentials."""

import asyncio
from collections.abc import Mapping

from msgspec import UNSET

from stringd.runs.errors import RefusedError
from stringd.runs.handlers.client import ConnectedClient
from stringd.runs.handlers.dispatch import Later
from stringd.runs.models.credentials import (
    ApiKey,
    Credential,
    CustomData,
    OauthToken,
    VaultError,
)
from stringd.runs.models.directory import ProviderDirectory
from stringd.wire.runs import messages, requests


class ProviderHandlers:
    def __init__(self, directory: ProviderDirectory) -> None:
        self._directory = directory

    def handlers(self) -> Mapping[type, Later]:
        return {
            requests.ListProviders: self._list_providers,
            requests.GetAvailableModels: self._available_models,
            requests.RegisterProvider: self._register_provider,
            requests.UnregisterProvider: self._unregister_provider,
            requests.SetCredential: self._set_credential,
            requests.RemoveCredential: self._remove_credential,
        }

    async def _list_providers(
        self, request: requests.ListProviders, _client: ConnectedClient
    ) -> messages.Message:
        found = await self._directory.infos(
            request.scope or None, ask=request.live, only=request.provider_id or None
        )
        return messages.ProviderList(providers=found)

    async def _available_models(
        self, request: requests.GetAvailableModels, _client: ConnectedClient
    ) -> messages.Message:
        wanted, scope = request.model_id or "", request.scope or None
        return messages.AvailableModels(models=await self._directory.available(wanted, scope))

    async def _register_provider(
        self, request: requests.RegisterProvider, _client: ConnectedClient
    ) -> messages.Message:
        self._directory.register(request.provider_id)
        return messages.ProviderRegistered(provider_id=request.provider_id)

    async def _unregister_provider(
        self, request: requests.UnregisterProvider, _client: ConnectedClient
    ) -> messages.Message:
        self._directory.unregister(request.provider_id)
        return messages.ProviderUnregistered(provider_id=request.provider_id)

    async def _set_credential(
        self, request: requests.SetCredential, _client: ConnectedClient
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

    async def _remove_credential(
        self, request: requests.RemoveCredential, _client: ConnectedClient
    ) -> messages.Message:
        name = request.provider_id
        try:
            removed = await asyncio.to_thread(self._directory.remove_credential, name)
        except VaultError as error:
            raise RefusedError("INTERNAL_ERROR", str(error)) from None
        return messages.CredentialRemoved(provider_id=name, removed=removed)


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

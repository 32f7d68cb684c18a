"""The providers this daemon can talk to: who they are, whether they are ready, what they offer."""

import asyncio
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from time import monotonic
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from stringd.net.addresses import classify
from stringd.net.streams import StreamClient
from stringd.runs.errors import ModelError, RefusedError
from stringd.runs.models import live
from stringd.runs.models.catalog import Catalog, price_of
from stringd.runs.models.catalog_refresh import LIFETIME_SECONDS, refresh
from stringd.runs.models.credentials import (
    Credential,
    Credentials,
    CustomData,
    FileVault,
    KeyringVault,
    Vault,
    VaultError,
    secret_of,
)
from stringd.runs.models.live import Lister
from stringd.runs.models.port import Model, ModelSetup
from stringd.runs.models.providers import (
    KEY_VARIABLES,
    KNOWN,
    Access,
    CredentialType,
    KnownProvider,
)
from stringd.runs.models.remote import RemoteModel
from stringd.runs.models.wires.anthropic import AnthropicWire
from stringd.runs.models.wires.openai import OpenAiWire
from stringd.runs.models.wires.wire import Wire
from stringd.system.provider_keys import with_provider_keys
from stringd.wire.runs.catalog import AvailableModel, ModelInfo, ProviderInfo

_DEMO_MODELS: Final = ("echo", "script")
# What a renewal computes takes less; a network it only waits for may be left behind.
_RENEWAL_SECONDS: Final = 1.0


class ProviderDirectory:
    """One per daemon."""

    def __init__(
        self,
        data_dir: Path,
        *,
        environ: Mapping[str, str] | None = None,
        use_keyring: bool = False,
        catalog_url: str | None = None,
    ) -> None:
        self._environ = with_provider_keys() if environ is None else environ
        vault: Vault = KeyringVault() if use_keyring else FileVault(data_dir / "credentials.json")
        self.credentials = Credentials(vault, self._environ)
        self._cache = data_dir / "cache" / "models-catalog.json"
        self._catalog_url = catalog_url
        self.catalog = Catalog(self._cache)
        self._registered = _Registered(FileVault(data_dir / "provider-registry.json"))
        self._client = StreamClient()
        self._renewal: threading.Thread | None = None
        self._renewal_due = 0.0

    def renew_catalog(self) -> threading.Thread | None:
        """Fetch a newer catalog in the background, where one may be fetched and is due."""
        if self._catalog_url is None or monotonic() < self._renewal_due:
            return None
        self._renewal_due = monotonic() + LIFETIME_SECONDS
        self._renewal = refresh(self._cache, self._catalog_url, KNOWN, self.catalog.forget)
        return self._renewal

    def model(self, name: str, setup: Callable[[str, str], ModelSetup]) -> Model:
        """The model a string names; `setup` is made for provider and model id.

        Raises `ModelError`.
        """
        provider_id, slash, model_id = name.partition("/")
        if slash:
            return self._model(provider_id, setup(provider_id, model_id))
        candidates = self.catalog.providers_of(name)
        if not candidates:
            raise ModelError(
                f'Model "{name}" is not listed by any known provider in the catalog. '
                'Use the "providerID/modelID" format, for example "demo/echo".'
            )
        for candidate in candidates:
            if self.access(candidate) is not None:
                return self._model(candidate, setup(candidate, name))
        raise ModelError(
            f'No credential found for model "{name}". Providers that offer it: '
            f"{', '.join(candidates)}. Set a credential for one of them."
        )

    def _model(self, provider_id: str, setup: ModelSetup) -> Model:
        access = self.access(provider_id)
        if access is None and provider_id not in KNOWN and self.credentials.find(provider_id):
            raise ModelError(
                f'Provider resolution failed for "{provider_id}": its address is not known. '
                "Send set_credential of type custom with a baseURL of an OpenAI-compatible server."
            )
        if access is None:
            raise ModelError(_no_credential(provider_id))
        if not (access.key.isascii() and access.key.isprintable()):
            # An error about a header may quote what could not be sent.
            raise ModelError(
                f'Provider resolution failed for "{provider_id}": '
                "its credential holds characters that cannot be sent in a header."
            )
        info = self.catalog.model(provider_id, setup.model_id)
        return RemoteModel(
            f"{provider_id}/{setup.model_id}",
            _wire(access, setup.model_id),
            self._client,
            options=setup.options,
            mask=self.credentials.mask,
            context_window=_number(info.context_window) if info else None,
            max_input_tokens=_number(info.max_input_tokens) if info else None,
            price=price_of(info),
        )

    def access(self, provider_id: str) -> Access | None:
        """How to reach a provider, or None while its credential is missing."""
        credential = self.credentials.find(provider_id)
        known = KNOWN.get(provider_id)
        if known is None:
            return _custom_access(credential)
        base_url = self._base_url(known)
        data = credential.data if isinstance(credential, CustomData) else {}
        if isinstance(data.get("baseURL"), str):
            base_url = data["baseURL"]
        key = secret_of(credential).strip() if credential else ""
        if not key and known.credential_type != "none" and not _is_loopback(base_url):
            return None
        return Access(known.family, base_url, key or "none")

    def _base_url(self, known: KnownProvider) -> str:
        given = self._environ.get(known.variable, "").strip() if known.variable else ""
        return _completed(given, known) if given else known.base_url

    async def close(self) -> None:
        """Close every connection, and let a renewal end if it does so soon."""
        if self._renewal is not None:
            # A process that ends while a thread reads certificates crashes.
            await asyncio.to_thread(self._renewal.join, _RENEWAL_SECONDS)
        await self._client.close()

    def save_credential(self, provider_id: str, credential: Credential) -> None:
        self.credentials.save(provider_id, credential)

    def register(self, provider_id: str) -> None:
        """Raises `RefusedError`, for a provider nobody knows too."""
        if provider_id not in self._ids():
            raise RefusedError("NOT_FOUND", f"Provider not found: {provider_id}")
        try:
            self._registered.add(provider_id)
        except VaultError as error:
            raise RefusedError("INTERNAL_ERROR", str(error)) from None

    def unregister(self, provider_id: str) -> None:
        """Raises `RefusedError`."""
        try:
            self._registered.remove(provider_id)
        except VaultError as error:
            raise RefusedError("INTERNAL_ERROR", str(error)) from None

    def _ids(self) -> list[str]:
        own = [each for each in self.credentials.kept() if self.access(each) is not None]
        return sorted({*self.catalog.provider_ids, *KNOWN, *own, "demo"})

    async def infos(self, scope: str | None, *, ask: bool) -> list[ProviderInfo]:
        """Every provider, sorted by id; with `ask`, those that can be asked are."""
        registered = self._registered.ids()
        found = [self._info(each, scope, custom=each in registered) for each in self._ids()]
        if ask:
            listers = [(info, self._lister(info.id)) for info in found]
            mask = self.credentials.mask
            await asyncio.gather(*(live.ask(info, each, mask) for info, each in listers if each))
        return found

    def _info(self, provider_id: str, scope: str | None, *, custom: bool) -> ProviderInfo:
        known = KNOWN.get(provider_id)
        models = self.catalog.models(provider_id)
        own = known is None and _custom_access(self.credentials.find(provider_id)) is not None
        kind: CredentialType = known.credential_type if known else "custom" if own else "api"
        if provider_id == "demo":
            kind, models = "none", [ModelInfo(id=each, name=each) for each in _DEMO_MODELS]
        ready = kind == "none" or self.credentials.find(provider_id, scope) is not None
        return ProviderInfo(
            id=provider_id,
            name=_NAMES.get(provider_id) or self.catalog.name(provider_id),
            credential_type=kind,
            auth_status="configured" if ready else "none",
            models=models,
            models_source="catalog",
            is_custom=custom,
        )

    def _lister(self, provider_id: str) -> Lister | None:
        """Who can say more than the catalog: servers of the owner's own, and a few others."""
        known, access = KNOWN.get(provider_id), self.access(provider_id)
        if access is None:
            return None
        if provider_id == "ollama":
            return live.ollama(access.base_url)
        if provider_id == "github-copilot":
            return live.copilot(access.base_url, access.key)
        elsewhere = known is None or access.base_url != known.base_url
        if access.family == "openai" and elsewhere:
            return live.openai_compatible(access.base_url, access.key)
        return None

    async def available(self, wanted: str, scope: str | None) -> list[AvailableModel]:
        """One entry per model id, sorted; facts from the first provider that lists it."""
        found: dict[str, AvailableModel] = {}
        for info in await self.infos(scope, ask=False):
            ready = info.auth_status == "configured"
            for model in info.models:
                if wanted not in model.id:
                    continue
                entry = found.setdefault(model.id, _available(model))
                entry.providers.append(info.id)
                if ready:
                    entry.configured_providers.append(info.id)
                    entry.has_credentials = True
        return [found[name] for name in sorted(found)]


_NAMES: Final = {"demo": "Demo", "ollama": "Ollama"}


class _Registered:
    """The ids the owner registered, kept as a JSON list."""

    def __init__(self, vault: FileVault) -> None:
        self._vault = vault

    def ids(self) -> list[str]:
        try:
            return self._kept()
        except (VaultError, msgspec.DecodeError, UnicodeDecodeError):
            # Named by whoever looks for damage.
            return []

    def add(self, provider_id: str) -> None:
        """Raises `VaultError` or `OSError`."""
        self._vault.save(msgspec.json.encode(sorted({*self._readable(), provider_id})))

    def remove(self, provider_id: str) -> None:
        """Raises `VaultError` or `OSError`."""
        known = self._readable()
        if provider_id in known:
            self._vault.save(msgspec.json.encode([each for each in known if each != provider_id]))

    def _readable(self) -> list[str]:
        """What is kept; it is about to be rewritten, so what cannot be read is put aside."""
        try:
            return self._kept()
        except (msgspec.DecodeError, UnicodeDecodeError):
            self._vault.put_aside()
            return []

    def _kept(self) -> list[str]:
        return msgspec.json.decode(self._vault.load() or b"[]", type=list[str])


def _available(model: ModelInfo) -> AvailableModel:
    facts: dict[str, Any] = {name: getattr(model, name) for name in model.__struct_fields__}
    return AvailableModel(**facts, has_credentials=False, providers=[], configured_providers=[])


def _no_credential(provider_id: str) -> str:
    names = " or ".join(KEY_VARIABLES.get(provider_id, ()))
    way = f"Set {names}, or send set_credential" if names else "Send set_credential"
    return f'No credential found for provider "{provider_id}". {way}.'


def _wire(access: Access, model_id: str) -> Wire:
    form = AnthropicWire if access.family == "anthropic" else OpenAiWire
    return form(access, model_id)


def _custom_access(credential: Credential | None) -> Access | None:
    """A provider of the owner's own: an OpenAI-compatible server at an address they gave."""
    data = credential.data if isinstance(credential, CustomData) else {}
    base_url = data.get("baseURL")
    if not isinstance(base_url, str):
        return None
    return Access("openai", base_url, secret_of(CustomData(dict(data))).strip() or "none")


def _completed(url: str, known: KnownProvider) -> str:
    """An address as requests want it: one adds the version itself, Ollama's has none."""
    url = url.rstrip("/")
    if known.family == "anthropic":
        return url.removesuffix("/v1")
    return f"{url}/v1" if known is KNOWN["ollama"] and not urlsplit(url).path else url


def _is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return classify(host) == "loopback"
    except ValueError:
        return host == "localhost"


def _number(value: object) -> int | None:
    return value if isinstance(value, int) else None

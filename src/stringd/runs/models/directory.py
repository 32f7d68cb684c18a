"""The providers this daemon can talk to: who they are, whether they are ready, what they offer."""

import asyncio
import threading
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from pathlib import Path
from time import monotonic
from typing import Any, Final
from urllib.parse import urlsplit

from msgspec import UNSET

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
    VaultError,
    secret_of,
    vault_of,
)
from stringd.runs.models.live import Lister
from stringd.runs.models.port import Model, ModelSetup
from stringd.runs.models.providers import (
    KEY_VARIABLES,
    KNOWN,
    OWN,
    Access,
    CredentialType,
    KnownProvider,
    listed_provider,
)
from stringd.runs.models.registered import RegisteredProviders
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
        vault = vault_of(data_dir, use_keyring=use_keyring)
        self.credentials = Credentials(vault, self._environ)
        self._cache = data_dir / "cache" / "models-catalog.json"
        self._catalog_url = catalog_url
        self.catalog = Catalog(self._cache)
        self._registered = RegisteredProviders(FileVault(data_dir / "provider-registry.json"))
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
            f"{', '.join(candidates)}. Type: stringd keys set {candidates[0]}"
        )

    def _model(self, provider_id: str, setup: ModelSetup) -> Model:
        access = self.access(provider_id)
        if access is None:
            raise ModelError(self._why_not(provider_id))
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

    def known(self, provider_id: str) -> KnownProvider | None:
        """A provider of our table, or of the catalog as it was fetched."""
        return KNOWN.get(provider_id) or listed_provider(self.catalog.entry(provider_id))

    def _why_not(self, provider_id: str, among: Credentials | None = None) -> str:
        """Why a provider cannot be used, and what to type."""
        known = self.known(provider_id)
        if known is None and (among or self.credentials).find(provider_id):
            return (
                f'Provider resolution failed for "{provider_id}": its address is not known. '
                f"Type: stringd keys set {provider_id} --base-url <address of a server that "
                "speaks OpenAI's form>"
            )
        told = f'No credential found for provider "{provider_id}".'
        if known is None and provider_id not in KEY_VARIABLES:
            near = get_close_matches(provider_id, self._ids(among), n=1)
            meant = f" Did you mean {near[0]}?" if near else ""
            return f"{told} It is not a known provider.{meant} See: stringd providers --all"
        names = " or ".join(KEY_VARIABLES.get(provider_id, ()))
        # What was exported later is in the caller's environment only, and looks set to them.
        lacks = f" The daemon was started without {names}." if names else ""
        return f"{told}{lacks} Type: stringd keys set {provider_id}"

    def access(self, provider_id: str, among: Credentials | None = None) -> Access | None:
        """How to reach a provider, or None while its credential is missing.

        `among` are the credentials, where they were read already.
        """
        credential = (among or self.credentials).find(provider_id)
        known = self.known(provider_id)
        if known is None:
            return _custom_access(credential)
        base_url = self._base_url(known)
        data = credential.data if isinstance(credential, CustomData) else {}
        if isinstance(data.get("baseURL"), str):
            base_url = _completed(data["baseURL"], known)
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

    def remove_credential(self, provider_id: str) -> bool:
        """Forget what is kept; whether there was something. Raises `VaultError` or `OSError`."""
        return self.credentials.remove(provider_id)

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

    def _ids(self, among: Credentials | None = None) -> list[str]:
        own = (among or self.credentials).kept()
        return sorted({*self.catalog.provider_ids, *KNOWN, *own, "demo"})

    async def infos(
        self, scope: str | None, *, ask: bool, only: str | None = None
    ) -> list[ProviderInfo]:
        """Every provider or `only` one, sorted by id; with `ask`, those that can be asked are."""
        registered = self._registered.ids()
        kept = await asyncio.to_thread(self.credentials.as_kept_now)
        wanted = [each for each in self._ids(kept) if only is None or each == only]
        found = [self._info(each, scope, kept, custom=each in registered) for each in wanted]
        if ask:
            listers = [(info, self._lister(info.id, kept)) for info in found]
            mask = kept.mask
            await asyncio.gather(*(live.ask(info, each, mask) for info, each in listers if each))
            for info in found:
                if not info.models and not info.usable:
                    info.error, info.models_source = self._why_not(info.id, kept), "error"
        return found

    def _info(
        self, provider_id: str, scope: str | None, kept: Credentials, *, custom: bool
    ) -> ProviderInfo:
        known = self.known(provider_id)
        located = kept.locate(provider_id, scope)
        # All models of everybody are megabytes; those of the many others come with a key.
        models = self.catalog.models(provider_id) if provider_id in OWN or located else []
        own = known is None and _custom_access(kept.find(provider_id)) is not None
        kind: CredentialType = known.credential_type if known else "custom" if own else "api"
        if provider_id == "demo":
            kind, models = "none", [ModelInfo(id=each, name=each) for each in _DEMO_MODELS]
        ready = kind == "none" or located is not None
        source = located[1] if located else None
        return ProviderInfo(
            id=provider_id,
            name=_NAMES.get(provider_id) or self._name(provider_id, known),
            credential_type=kind,
            auth_status="configured" if ready else "none",
            models=models,
            models_source="catalog",
            is_custom=custom,
            usable=provider_id == "demo" or self.access(provider_id, kept) is not None,
            credential_source=source.kind if source else UNSET,
            credential_variable=(source.variable if source else None) or UNSET,
            key_variables=list(KEY_VARIABLES.get(provider_id, ())),
        )

    def _name(self, provider_id: str, known: KnownProvider | None) -> str:
        name = self.catalog.name(provider_id)
        return known.name if known and known.name and name == provider_id else name

    def _lister(self, provider_id: str, kept: Credentials) -> Lister | None:
        """Where a provider says more than the catalog; one without a key is not asked."""
        known, access = self.known(provider_id), self.access(provider_id, kept)
        if access is None:
            return None
        if provider_id == "ollama":
            return live.ollama(access.base_url)
        if provider_id == "github-copilot":
            return live.copilot(access.base_url, access.key)
        elsewhere = known is None or access.base_url != known.base_url
        if not elsewhere and kept.find(provider_id) is None:
            return None
        if access.family == "anthropic":
            return live.anthropic(access.base_url, access.key)
        return live.openai_compatible(access.base_url, access.key)

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


def _available(model: ModelInfo) -> AvailableModel:
    facts: dict[str, Any] = {name: getattr(model, name) for name in model.__struct_fields__}
    return AvailableModel(**facts, has_credentials=False, providers=[], configured_providers=[])


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

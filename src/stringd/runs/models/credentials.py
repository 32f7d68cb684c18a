"""Secrets of model providers: where they are kept, in which order they are looked up.

A credential leaves this module only for the provider it belongs to; texts for people go through
`mask` first.
"""

import logging
from collections.abc import Mapping
from pathlib import Path
from threading import Lock
from typing import Any, Final, Literal, NamedTuple, Protocol

import msgspec

from stringd.runs.models.providers import KEY_VARIABLES
from stringd.system.damage import put_aside
from stringd.system.files import make_private_directory, write_atomically
from stringd.system.keyring import Keyring, KeyringError
from stringd.system.provider_keys import with_provider_keys

log = logging.getLogger(__name__)

GLOBAL: Final = "$global"
_HIDDEN: Final = "[hidden]"
# Shorter texts are not keys, and hiding them would garble ordinary words.
_MIN_SECRET: Final = 6


class ApiKey(msgspec.Struct, tag_field="type", tag="api", frozen=True):
    key: str


class OauthToken(
    msgspec.Struct, tag_field="type", tag="oauth", rename="camel", frozen=True, omit_defaults=True
):
    access_token: str
    refresh_token: str | None = None
    expires_at: float | None = None
    account_id: str | None = None
    metadata: Any = None


class CustomData(msgspec.Struct, tag_field="type", tag="custom", frozen=True):
    data: dict[str, Any] = {}


Credential = ApiKey | OauthToken | CustomData
Scopes = dict[str, dict[str, Credential]]


def secret_of(credential: Credential) -> str:
    """The text a provider wants as its key."""
    match credential:
        case ApiKey(key):
            return key
        case OauthToken(token):
            return token
        case CustomData(data):
            return str(data.get("apiKey") or "")


class VaultError(Exception):
    """The place where credentials are kept cannot be used; the text says why."""


class Vault(Protocol):
    """Keeps one text. Raises `VaultError` or `OSError`."""

    def load(self) -> bytes: ...

    def save(self, content: bytes) -> None: ...

    def put_aside(self) -> None:
        """Keep what cannot be read under another name."""


class FileVault:
    """A file only its owner can read."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def load(self) -> bytes:
        try:
            return self._path.read_bytes()
        except FileNotFoundError:
            return b""
        except OSError as error:
            # Not empty: what is written now would take the place of what is there.
            raise VaultError(f"cannot read {self._path}: {error.strerror}") from error

    def save(self, content: bytes) -> None:
        make_private_directory(self._path.parent)
        write_atomically(self._path, content, 0o600)

    def put_aside(self) -> None:
        put_aside(self._path)


class KeyringVault:
    """The system's keyring. That nothing was kept is remembered too: runs ask often."""

    _ENTRY: Final = "credentials"

    def __init__(self) -> None:
        self._keyring = Keyring("stringd-models")
        self._kept: bytes | None = None

    def load(self) -> bytes:
        if self._kept is None:
            try:
                self._kept = (self._keyring.load(self._ENTRY) or "").encode()
            except KeyringError as error:
                raise VaultError(str(error)) from None
        return self._kept

    def save(self, content: bytes) -> None:
        try:
            self._keyring.save(self._ENTRY, content.decode())
        except KeyringError as error:
            raise VaultError(str(error)) from None
        self._kept = content

    def put_aside(self) -> None:
        try:
            self._keyring.save(f"{self._ENTRY}.unreadable", self.load().decode())
        except KeyringError as error:
            raise VaultError(str(error)) from None


def vault_of(data_dir: Path, *, use_keyring: bool) -> Vault:
    """Where the daemon of a data directory keeps credentials."""
    return KeyringVault() if use_keyring else FileVault(data_dir / "credentials.json")


class _ReadVault:
    """What another vault held when it was read; nothing is written to it."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def load(self) -> bytes:
        return self._content

    def save(self, content: bytes) -> None:  # noqa: ARG002 - the port has it
        raise VaultError("these credentials are only read")

    def put_aside(self) -> None:
        raise VaultError("these credentials are only read")


class CredentialSource(NamedTuple):
    """Where a credential comes from; `variable` is the one of the environment."""

    kind: Literal["strategy", "environment", "stored"]
    variable: str | None = None


class OfferedCredential(NamedTuple):
    """A credential of another program: for whom it is, and what becomes of it here.

    `taken` and `same` are both False for one that differs from what is kept, and is left out.
    """

    scope: str | None
    provider_id: str
    taken: bool
    same: bool = False
    problem: str = ""


class Credentials:
    """Strategy scope, then environment, then what is kept for everyone."""

    def __init__(self, vault: Vault, environ: Mapping[str, str] | None = None) -> None:
        self._vault = vault
        self._environ = with_provider_keys() if environ is None else environ
        self._saving = Lock()

    def find(self, provider_id: str, scope: str | None = None) -> Credential | None:
        found = self.locate(provider_id, scope)
        return None if found is None else found[0]

    def locate(
        self, provider_id: str, scope: str | None = None
    ) -> tuple[Credential, CredentialSource] | None:
        """A credential, and where it comes from."""
        stored = self._scopes()
        if scope and scope != GLOBAL and provider_id in stored.get(scope, {}):
            return stored[scope][provider_id], CredentialSource("strategy")
        for name in KEY_VARIABLES.get(provider_id, ()):
            if value := self._environ.get(name):
                return ApiKey(value), CredentialSource("environment", name)
        kept = stored.get(GLOBAL, {}).get(provider_id)
        return None if kept is None else (kept, CredentialSource("stored"))

    def as_kept_now(self) -> "Credentials":
        """The same, read once: a keyring that cannot be used takes long to say so."""
        return Credentials(_ReadVault(msgspec.json.encode(self._scopes())), self._environ)

    def kept(self) -> list[str]:
        """The providers something is kept for, for everyone."""
        return sorted(self._scopes().get(GLOBAL, {}))

    def save(self, provider_id: str, credential: Credential) -> None:
        """Keep a credential for every run. Raises `VaultError` or `OSError`."""
        with self._saving:
            # A vault that cannot be read now must not be emptied by writing to it.
            content = self._vault.load()
            scopes = _decoded(content)
            if not scopes and content.strip() not in (b"", b"{}"):
                self._vault.put_aside()
            scopes.setdefault(GLOBAL, {})[provider_id] = credential
            self._write(scopes)

    def take_over(
        self, content: bytes, *, replace: bool = False, dry: bool = False
    ) -> list[OfferedCredential]:
        """Keep what another vault's text holds; with `replace` also over what is kept here.

        Raises `VaultError`, also for a text that holds no credentials, or `OSError`.
        """
        try:
            offered = msgspec.json.decode(content, type=dict[str, dict[str, msgspec.Raw]])
        except (msgspec.DecodeError, msgspec.ValidationError, UnicodeDecodeError):
            raise VaultError("it holds no credentials that can be read") from None
        with self._saving:
            now = self._vault.load()
            scopes = _decoded(now)
            if not scopes and now.strip() not in (b"", b"{}"):
                raise VaultError("the credentials kept here cannot be read")
            found = [
                _offered(scopes, scope, provider_id, raw, replace=replace)
                for scope, entries in offered.items()
                for provider_id, raw in entries.items()
            ]
            if not dry and any(each.taken for each in found):
                self._write(scopes)
        return found

    def remove(self, provider_id: str) -> bool:
        """Forget what is kept for every run; whether there was something.

        Raises `VaultError` or `OSError`.
        """
        with self._saving:
            scopes = _decoded(self._vault.load())
            if scopes.get(GLOBAL, {}).pop(provider_id, None) is None:
                return False
            self._write(scopes)
            return True

    def _write(self, scopes: Scopes) -> None:
        kept = {scope: entries for scope, entries in scopes.items() if entries}
        self._vault.save(msgspec.json.format(msgspec.json.encode(kept), indent=2))

    def mask(self, text: str) -> str:
        """The text without any secret known here."""
        for secret in sorted(self._secrets(), key=len, reverse=True):
            text = text.replace(secret, _HIDDEN)
        return text

    def _secrets(self) -> set[str]:
        names = {name for names in KEY_VARIABLES.values() for name in names}
        found = {self._environ.get(name, "") for name in names}
        for entries in self._scopes().values():
            for credential in entries.values():
                found |= set(_texts(msgspec.to_builtins(credential)))
        return {secret for secret in found if len(secret) >= _MIN_SECRET}

    def _scopes(self) -> Scopes:
        try:
            return _decoded(self._vault.load())
        except VaultError as error:
            log.warning("%s", error)
            return {}


def _offered(
    scopes: Scopes, scope: str, provider_id: str, raw: msgspec.Raw, *, replace: bool
) -> OfferedCredential:
    """Put one credential among those that are kept, if that is wanted."""
    shown = None if scope == GLOBAL else scope
    try:
        credential = msgspec.json.decode(raw, type=Credential)
    except (msgspec.DecodeError, msgspec.ValidationError):
        return OfferedCredential(shown, provider_id, taken=False, problem="it is not a credential")
    kept = scopes.get(scope, {}).get(provider_id)
    if kept is not None and (kept == credential or not replace):
        return OfferedCredential(shown, provider_id, taken=False, same=kept == credential)
    scopes.setdefault(scope, {})[provider_id] = credential
    return OfferedCredential(shown, provider_id, taken=True)


def _decoded(content: bytes) -> Scopes:
    try:
        return msgspec.json.decode(content or b"{}", type=Scopes)
    except (msgspec.DecodeError, msgspec.ValidationError):
        return {}


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for key, each in value.items() if key != "type" for text in _texts(each)]
    return [text for each in value for text in _texts(each)] if isinstance(value, list) else []

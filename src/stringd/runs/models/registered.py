"""The providers that clients registered by hand."""

import msgspec

from stringd.runs.models.credentials import FileVault, VaultError


class RegisteredProviders:
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

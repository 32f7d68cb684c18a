"""The system's keyring. The package behind it is imported on first use."""

from typing import Final


class KeyringError(Exception):
    """The keyring cannot be used; `str()` says why."""


class KeyringMissingError(KeyringError):
    """The keyring package is not installed."""

    def __init__(self) -> None:
        super().__init__(
            "The keyring package is missing. Install it with: pip install 'stringd[keyring]'"
        )


class Keyring:
    """The entries of one service. What was read is kept: asking may take a round trip over D-Bus,
    and entries change only through here."""

    def __init__(self, service: str) -> None:
        self._service: Final = service
        self._known: dict[str, str] = {}

    def load(self, entry: str) -> str | None:
        """An entry's text; None when there is none. Raises `KeyringError`."""
        if entry not in self._known:
            try:
                import keyring

                text = keyring.get_password(self._service, entry)
            except Exception as error:  # backends raise whatever they like
                raise _unusable(error) from error
            if text is None:
                return None
            self._known[entry] = text
        return self._known[entry]

    def save(self, entry: str, text: str) -> None:
        """Keep a text. Raises `KeyringError`."""
        try:
            import keyring

            keyring.set_password(self._service, entry, text)
        except Exception as error:  # backends raise whatever they like
            raise _unusable(error) from error
        self._known[entry] = text


def _unusable(error: Exception) -> KeyringError:
    if isinstance(error, ImportError):
        return KeyringMissingError()
    return KeyringError(f"The system keyring cannot be used: {str(error) or type(error).__name__}")

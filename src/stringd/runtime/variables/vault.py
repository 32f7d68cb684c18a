"""Persistent values in the system keyring: a file then holds only the mark that one is there."""

from pathlib import Path
from typing import Final

from stringd.runtime.errors import CommandError

SERVICE: Final = "stringd"
MARK: Final = {"keyring": True}
"""What stands in a file instead of a value the keyring holds."""
# Asking the keyring may take a round trip over D-Bus; values change only through here.
_known: dict[str, str] = {}


def keep(path: Path, name: str, value: str) -> None:
    """Put a value into the keyring. Raises `CommandError`."""
    try:
        import keyring

        keyring.set_password(SERVICE, _entry(path, name), value)
    except Exception as error:  # backends raise whatever they like
        raise _unusable(error) from error
    _known[_entry(path, name)] = value


def recall(path: Path, name: str) -> str | None:
    """A value from the keyring; None when it is gone. Raises `CommandError`."""
    entry = _entry(path, name)
    if entry not in _known:
        try:
            import keyring

            value = keyring.get_password(SERVICE, entry)
        except Exception as error:  # backends raise whatever they like
            raise _unusable(error) from error
        if value is None:
            return None
        _known[entry] = value
    return _known[entry]


def _entry(path: Path, name: str) -> str:
    return f"{path}#{name}"


def _unusable(error: Exception) -> CommandError:
    if isinstance(error, ImportError):
        return CommandError(
            "INTERNAL_ERROR",
            "The keyring package is missing. Install it with: pip install 'stringd[keyring]'",
        )
    return CommandError(
        "INTERNAL_ERROR",
        f"The system keyring cannot be used: {error}\n"
        "Without STRINGD_SECRETS=keyring, values are kept in files only their owner can read.",
    )

"""Persistent values in the system keyring: a file then holds only the mark that one is there."""

from pathlib import Path
from typing import Final

from stringd.runtime.errors import CommandError
from stringd.system.keyring import Keyring, KeyringError, KeyringMissingError

MARK: Final = {"keyring": True}
"""What a file holds instead of a value that is in the keyring."""
_KEYRING: Final = Keyring("stringd")


def keep(path: Path, name: str, value: str) -> None:
    """Put a value into the keyring. Raises `CommandError`."""
    try:
        _KEYRING.save(_entry(path, name), value)
    except KeyringError as error:
        raise _command_error(error) from error


def recall(path: Path, name: str) -> str | None:
    """A value from the keyring; None when it is gone. Raises `CommandError`."""
    try:
        return _KEYRING.load(_entry(path, name))
    except KeyringError as error:
        raise _command_error(error) from error


def _entry(path: Path, name: str) -> str:
    return f"{path}#{name}"


def _command_error(error: KeyringError) -> CommandError:
    text = str(error)
    if not isinstance(error, KeyringMissingError):
        text += (
            "\nWithout STRINGD_SECRETS=keyring, values are kept in files only their owner can read."
        )
    return CommandError("INTERNAL_ERROR", text)

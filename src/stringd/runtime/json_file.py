"""The user's own JSON files: read whole, written whole, readable by their owner alone."""

from pathlib import Path

import msgspec

from stringd.runtime.errors import CommandError
from stringd.runtime.storage import make_private_directory, write_atomically


def read_object(path: Path) -> dict[str, object]:
    """The object in a file; an absent file has none. Raises `CommandError` for a broken one."""
    try:
        content = msgspec.json.decode(path.read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise CommandError(
            "LOAD_ERROR", f"{path.name} cannot be read: {error}\nRecovery: mend or remove {path}"
        ) from error
    return content if isinstance(content, dict) else {}


def write_object(path: Path, content: dict[str, object]) -> None:
    """Replace the file in one step. Raises `CommandError`."""
    text = msgspec.json.format(msgspec.json.encode(content), indent=2)
    try:
        make_private_directory(path.parent)
        write_atomically(path, text + b"\n", 0o600)
    except OSError as error:
        raise CommandError(
            "INTERNAL_ERROR", f"Could not store {path.name}: {error.strerror}"
        ) from error

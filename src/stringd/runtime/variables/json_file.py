"""The user's own JSON files: read whole, written whole, readable by their owner alone."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from stringd.runtime.errors import CommandError
from stringd.system.files import held, make_private_directory, write_atomically


def read_object(path: Path) -> dict[str, object]:
    """The object in a file; an absent file has none. Raises `CommandError` for a broken one."""
    try:
        content = msgspec.json.decode(path.read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise CommandError(
            "LOAD_ERROR", f"{path.name} cannot be read: {error}\nRecovery: repair or remove {path}"
        ) from error
    return content if isinstance(content, dict) else {}


@contextmanager
def changing(path: Path) -> Iterator[dict[str, object]]:
    """The object in a file, to be changed in place: it is written back while others wait.

    Raises `CommandError`.
    """
    try:
        make_private_directory(path.parent)
        with held(path.parent):
            content = read_object(path)
            before = msgspec.json.encode(content)
            yield content
            after = msgspec.json.encode(content)
            if after != before:
                write_atomically(path, msgspec.json.format(after, indent=2) + b"\n", 0o600)
    except OSError as error:
        raise CommandError(
            "INTERNAL_ERROR", f"Could not store {path.name}: {error.strerror}"
        ) from error

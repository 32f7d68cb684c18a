"""What a backup says about itself: where it was made, and the digest of every file in it."""

import json
from pathlib import PurePosixPath
from typing import Any, Final, NamedTuple

FORMAT: Final = 1
MANIFEST: Final = "manifest.json"
SHARED: Final = "string"
"""The folder of the archive with what was in `~/.string`."""
DATA: Final = "data"
"""The folder of the archive with what was in the data directory."""


class BackupError(Exception):
    """No backup was made, or nothing restored; `str()` says why and what to do."""


class BackupEntry(NamedTuple):
    """A file or a link of the archive. `digest` is the SHA-256 of a file's content."""

    path: str
    mode: int
    size: int
    digest: str
    link: str = ""


class BackupManifest(NamedTuple):
    """`shared` and `data` are where the two directories were."""

    made: str
    version: str
    shared: str
    data: str
    entries: tuple[BackupEntry, ...]


def encode(manifest: BackupManifest) -> bytes:
    """The manifest as it is in the archive."""
    value = {
        "format": FORMAT,
        **manifest._asdict(),
        "entries": [each._asdict() for each in manifest.entries],
    }
    return json.dumps(value, indent=1).encode() + b"\n"


def decode(data: bytes) -> BackupManifest:
    """The manifest of an archive. Raises `BackupError`."""
    try:
        value: dict[str, Any] = json.loads(data)
        if value["format"] != FORMAT:
            raise BackupError(
                f"the backup has format {value['format']}, and this version reads {FORMAT}. "
                f"Install the version that made it, or a later one: {value.get('version')}"
            )
        entries = tuple(BackupEntry(**each) for each in value["entries"])
        made, version, shared, data_dir = (
            str(value[name]) for name in ("made", "version", "shared", "data")
        )
        if not all(map(_is_sound, entries)):
            raise ValueError
    except (ValueError, KeyError, TypeError, RecursionError, AttributeError):
        raise BackupError("the backup is damaged: its manifest cannot be read") from None
    return BackupManifest(made, version, shared, data_dir, entries)


def _is_sound(entry: BackupEntry) -> bool:
    kinds = (str, int, int, str, str)
    return all(map(isinstance, entry, kinds)) and is_inside(entry.path) and entry.size >= 0


def is_inside(path: str) -> bool:
    """Whether a name of the archive stays in one of its two folders."""
    parts = PurePosixPath(path).parts
    plain = "\0" not in path and ".." not in parts and str(PurePosixPath(path)) == path
    return plain and len(parts) > 1 and parts[0] in (SHARED, DATA)

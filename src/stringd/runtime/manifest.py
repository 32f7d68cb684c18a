"""Install manifests: JSON that lists the files of an app, each inline or at its own address."""

from collections.abc import Mapping
from typing import Final, NamedTuple
from urllib.parse import urljoin

import msgspec

ROOT: Final = "string.md"
_NAMED: Final = 5


class Part(NamedTuple):
    """One file: its text, or where to fetch it."""

    content: str | None
    url: str | None


class Manifest(NamedTuple):
    """Files by path. The manifest's own address stands for its root document."""

    url: str
    files: Mapping[str, Part]
    install_hint: str | None = None

    def find(self, url: str) -> Part | None:
        """The file a resolved link means, if the manifest lists it."""
        if url == self.url:
            return self.files.get(ROOT)
        base = urljoin(self.url, ".")
        return self.files.get(url.removeprefix(base)) if url.startswith(base) else None

    @property
    def named(self) -> str:
        """The first paths it lists, for a message."""
        return ", ".join(list(self.files)[:_NAMED]) or "none"


def read_manifest(body: bytes, url: str) -> Manifest | None:
    """The manifest in a body; None when it is something else."""
    if not body.lstrip().startswith(b"{"):
        return None
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    listed = value.get("files") if isinstance(value, dict) else None
    if not isinstance(listed, list):
        return None
    hint = value.get("install_hint")
    files = {
        entry["path"].removeprefix("./"): Part(_text(entry, "content"), _text(entry, "url"))
        for entry in listed
        if isinstance(entry, dict) and isinstance(entry.get("path"), str)
    }
    return Manifest(url, files, hint if isinstance(hint, str) else None)


def _text(entry: dict[str, object], key: str) -> str | None:
    value = entry.get(key)
    return value if isinstance(value, str) else None

"""What a topic last saw of each file, so that an edit never overwrites what nobody has read."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

MAX_SEEN_FILES: Final = 1000
"""Whoever reads more files forgets the oldest."""


class SeenFiles:
    """Digests by path, the ones seen last at the end."""

    __slots__ = ("_digests", "_unsaved")

    def __init__(self, known: Iterable[tuple[str, bytes]] = ()) -> None:
        self._digests: dict[str, bytes] = dict(known)
        self._unsaved: dict[str, bytes | None] = {}

    def __contains__(self, file: Path) -> bool:
        return str(file) in self._digests

    def get(self, file: Path) -> bytes | None:
        """The digest of what was last seen of a file."""
        return self._digests.get(str(file))

    def saw(self, file: Path, digest: bytes) -> None:
        """Remember what a file was when this topic read or wrote it."""
        path = str(file)
        if self._digests.pop(path, None) != digest:
            self._unsaved[path] = digest
        self._digests[path] = digest
        if len(self._digests) > MAX_SEEN_FILES:
            self._forget(next(iter(self._digests)))

    def forget(self, file: Path) -> None:
        """The file is gone, or as good as never seen."""
        self._forget(str(file))

    @property
    def unsaved(self) -> Mapping[str, bytes | None]:
        """What changed since it was kept: a digest, or None for a file that is forgotten."""
        return self._unsaved

    def saved(self, kept: Mapping[str, bytes | None]) -> None:
        """So much of what changed is on disk now."""
        for path, digest in kept.items():
            if path in self._unsaved and self._unsaved[path] == digest:
                del self._unsaved[path]

    def _forget(self, path: str) -> None:
        if self._digests.pop(path, None) is not None:
            self._unsaved[path] = None

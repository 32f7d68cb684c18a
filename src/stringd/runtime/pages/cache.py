"""Documents parsed before: going back, refreshing and opening in another topic parse nothing."""

import threading
from typing import Final, NamedTuple

from stringd.documents import Document, parse
from stringd.runtime.editing.text_file import FileText, digest

MAX_CHARACTERS: Final = 16 * 1024 * 1024
"""Of all cached sources together; a document larger than a quarter of it is never kept."""


class Loaded(NamedTuple):
    """A file's document, and what identifies the file's content."""

    document: Document
    digest: bytes
    marked: bool

    def is_of(self, file: FileText) -> bool:
        """Whether the file still has this content."""
        return self.document.source == file.text and self.marked == file.marked


class DocumentCache:
    """The documents used last, one for each address: a changed file is another document."""

    def __init__(self, limit: int = MAX_CHARACTERS) -> None:
        self._limit = limit
        self._size = 0
        self._kept: dict[str, Loaded] = {}
        self._lock = threading.Lock()

    def load(self, file: FileText, uri: str) -> Loaded:
        """The document of a file that was just read."""
        with self._lock:
            found = self._take(uri)
        # Not while others wait: a large file takes a while.
        if found is None or not found.is_of(file):
            found = Loaded(parse(file.text, uri), digest(file.data), file.marked)
        if len(file.text) <= self._limit // 4:
            with self._lock:
                self._put(uri, found)
        return found

    def _take(self, uri: str) -> Loaded | None:
        found = self._kept.pop(uri, None)
        if found is not None:
            self._size -= len(found.document.source)
        return found

    def _put(self, uri: str, loaded: Loaded) -> None:
        self._take(uri)
        self._kept[uri] = loaded
        self._size += len(loaded.document.source)
        while self._size > self._limit:
            self._take(next(iter(self._kept)))

"""Documents parsed before: going back, refreshing and opening in another topic parse nothing."""

import threading
from collections.abc import Callable
from typing import Final, NamedTuple

from stringd.documents.document import Document, parse

MAX_CHARACTERS: Final = 16 * 1024 * 1024
"""Of all cached sources together; a document larger than a quarter of it is never kept."""


class CachedDocument(NamedTuple):
    """A file's document, and what identifies the file's content."""

    document: Document
    digest: bytes
    marked: bool


class DocumentCache:
    """The documents used last, one for each address: a changed file is another document."""

    def __init__(self, limit: int = MAX_CHARACTERS) -> None:
        self._limit = limit
        self._size = 0
        self._kept: dict[str, CachedDocument] = {}
        self._lock = threading.Lock()

    def load(
        self, text: str, uri: str, digest: Callable[[], bytes], *, marked: bool = False
    ) -> CachedDocument:
        """The document of a file that was just read; `digest` is asked for when it is new.

        `marked` says whether a byte order mark precedes the text.
        """
        with self._lock:
            found = self._take(uri)
        # Not while others wait: a large file takes a while.
        if found is None or found.document.source != text or found.marked != marked:
            found = CachedDocument(parse(text, uri), digest(), marked)
        if len(text) <= self._limit // 4:
            with self._lock:
                self._put(uri, found)
        return found

    def _take(self, uri: str) -> CachedDocument | None:
        found = self._kept.pop(uri, None)
        if found is not None:
            self._size -= len(found.document.source)
        return found

    def _put(self, uri: str, loaded: CachedDocument) -> None:
        self._take(uri)
        self._kept[uri] = loaded
        self._size += len(loaded.document.source)
        while self._size > self._limit:
            self._take(next(iter(self._kept)))

"""Documents parsed before: going back, refreshing and opening in another topic parse nothing."""

import threading
from typing import Final

from stringd.documents import Document, parse

MAX_CHARACTERS: Final = 16 * 1024 * 1024
"""Of all cached sources together; a document larger than a quarter of it is never kept."""


class DocumentCache:
    """The documents used last, by address and content: a changed file is another document."""

    def __init__(self, limit: int = MAX_CHARACTERS) -> None:
        self._limit = limit
        self._size = 0
        self._documents: dict[tuple[str, bytes], Document] = {}
        self._lock = threading.Lock()

    def parse(self, source: str, uri: str, digest: bytes) -> Document:
        """The document of a text; `digest` identifies the text."""
        key = uri, digest
        with self._lock:
            found = self._documents.pop(key, None)
            if found is not None:
                self._documents[key] = found
                return found
            document = parse(source, uri)
            if len(source) <= self._limit // 4:
                self._documents[key] = document
                self._size += len(source)
                self._shrink()
            return document

    def _shrink(self) -> None:
        while self._size > self._limit:
            oldest = next(iter(self._documents))
            self._size -= len(self._documents.pop(oldest).source)

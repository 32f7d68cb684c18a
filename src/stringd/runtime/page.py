"""A loaded document with what hangs on it, and the places of a session's history."""

from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

from stringd.documents import Document, Included, Menu
from stringd.runtime.manifest import Manifest
from stringd.wire.exec import Meta


@dataclass(frozen=True)
class Page:
    """A document as a session shows it. Menu targets are absolute."""

    document: Document
    menus: dict[str, Menu] = field(default_factory=dict)
    includes: dict[tuple[str, str], Included] = field(default_factory=dict)
    """Includes of a web page, fetched beforehand: (path, base) → text."""
    requirements: str | None = None
    """Address of the setup document, as `/open` takes it."""
    notice: str | None = None
    """A second line for the system message."""
    appendix: str | None = None
    """Text that follows the rendered document, such as an install hint."""
    public: bool = False
    """Whether it came from the public internet: then its links may not lead to this machine.

    Of a local document, whether one of its menus did; only its web menus are bound by it then.
    """
    manifest: Manifest | None = None
    """The manifest that lists it; its relative links are looked up there first."""

    @property
    def uri(self) -> str:
        return self.document.uri

    @cached_property
    def path(self) -> Path | None:
        """Where a local document lies; None for a web page."""
        return path_of(self.uri)

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        return self.document.warnings(self.menus.values())


class Location:
    """A document at a block: where a session stands, or stood. A restored one is not loaded."""

    __slots__ = ("_meta", "block", "manifest", "page", "public", "uri")

    def __init__(
        self,
        uri: str,
        block: str | None,
        page: Page | None = None,
        *,
        public: bool = False,
        manifest: str | None = None,
    ) -> None:
        self.uri = uri
        self.block = block
        self.page = page
        self.public = page.public if page else public
        self.manifest = page.manifest.url if page and page.manifest else manifest
        """Address of the manifest that lists the document."""
        self._meta: Meta | None = None

    def meta(self, history_length: int) -> Meta:
        """The head event's view of this location; asked for after every command."""
        if self._meta is not None and self._meta.history_length == history_length:
            return self._meta
        block = f"#{self.block}" if self.block else None
        if self.page is None:
            return Meta(self.uri, None, block, (), (), history_length, self.block)
        document = self.page.document
        self._meta = Meta(
            self.uri,
            document.title,
            block,
            tuple(document.menus),
            tuple(document.actions),
            history_length,
            self.block,
            document.converted,
            self.page.warnings,
        )
        return self._meta


@lru_cache(maxsize=4096)
def path_of(uri: str) -> Path | None:
    """The file a URI names, if it is a file's. Every command asks several times."""
    return Path(unquote(urlsplit(uri).path)) if uri.startswith("file://") else None


def is_web(uri: str) -> bool:
    return uri.startswith(("http://", "https://"))

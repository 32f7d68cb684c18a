"""A loaded document with what hangs on it, and the places of a session's history."""

from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

import msgspec

from stringd.documents import Document, Included, Menu, parse
from stringd.documents.addresses import joined
from stringd.runtime.manifest import Manifest
from stringd.wire.exec import Meta


@dataclass(frozen=True)
class Page:
    """A document as a session shows it. Menu targets are absolute."""

    document: Document
    menus: dict[str, Menu] = field(default_factory=dict)
    includes: dict[tuple[str, str], Included] = field(default_factory=dict)
    """Includes from the web, fetched beforehand: (path, base) → text."""
    requirements: str | None = None
    """Address of the setup document, as `/open` takes it."""
    notice: str | None = None
    """A second line for the system message."""
    appendix: str | None = None
    """Text that follows the rendered document, such as an install hint."""
    public: bool = False
    """Whether it came from the public internet: then its links may not lead to this machine.

    Of a local document, whether a part of it did; only its parts from the web are bound by it.
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

    def is_of_web_part(self, target: str) -> bool:
        """Whether a link stands in a menu or an include that came from the web."""
        menus = (menu for menu in self.menus.values() if is_web(menu.uri))
        return any(entry.target == target for menu in menus for entry in menu.entries) or any(
            target in _targets(file) for file in self.includes.values()
        )

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        return self.document.warnings(self.menus.values())


class Place(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """Where a document is, without what is there."""

    uri: str
    block: str | None = None
    public: bool = False
    """Whether it came from the public internet."""
    manifest: str | None = None
    """Address of the manifest that lists the document."""


class Location:
    """A document at a block: where a session stands, or stood. A restored one is not loaded."""

    __slots__ = ("_meta", "page", "place")

    def __init__(self, place: Place, page: Page | None = None) -> None:
        self.place = place
        self.page = page
        self._meta: Meta | None = None

    @classmethod
    def of(cls, page: Page, block: str | None = None) -> "Location":
        """A loaded page, or a block of it."""
        manifest = page.manifest.url if page.manifest else None
        return cls(Place(page.uri, block, page.public, manifest), page)

    @property
    def uri(self) -> str:
        return self.place.uri

    @property
    def block(self) -> str | None:
        return self.place.block

    def meta(self, history_length: int) -> Meta:
        """The head event's view of this location; asked for after every command."""
        if self._meta is not None and self._meta.history_length == history_length:
            return self._meta
        ident = self.block
        block = f"#{ident}" if ident else None
        if self.page is None:
            return Meta(self.uri, None, block, (), (), history_length, ident)
        document = self.page.document
        self._meta = Meta(
            self.uri,
            document.title,
            block,
            tuple(document.menus),
            tuple(document.actions),
            history_length,
            ident,
            document.converted,
            self.page.warnings,
        )
        return self._meta


@lru_cache(maxsize=4096)
def path_of(uri: str) -> Path | None:
    """The file a URI names, if it is a file's. Every command asks several times."""
    return Path(unquote(urlsplit(uri).path)) if uri.startswith("file://") else None


def _targets(file: Included) -> set[str]:
    """Where the links of an included file lead, as they are written and as they are shown."""
    document = parse(file.source, file.uri)
    written = [link.target for link in document.links if link.target]
    written += document.references.values()
    written += (shortcut.target for shortcut in document.shortcuts.values())
    return {*written, *(joined(file.uri, target) for target in written)}


def is_web(uri: str) -> bool:
    return uri.startswith(("http://", "https://"))

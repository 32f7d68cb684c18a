"""How replies name files and directories."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import unquote, urljoin, urlsplit

import msgspec

from stringd.actions.provenance import Provenance
from stringd.documents import Document, Included, Menu, parse
from stringd.documents.addresses import joined
from stringd.wire.exec import Meta

ROOT: Final = "string.md"
WARNINGS_SHOWN: Final = 100
_NAMED: Final = 5


class Part(NamedTuple):
    """One file: its text, or where to fetch it."""

    content: str | None
    url: str | None


class AppManifest(NamedTuple):
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


def read_manifest(body: bytes, url: str) -> AppManifest | None:
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
    return AppManifest(url, files, hint if isinstance(hint, str) else None)


def _text(entry: dict[str, object], key: str) -> str | None:
    value = entry.get(key)
    return value if isinstance(value, str) else None


def display(home: str, path: Path) -> str:
    """A path as replies show it: relative to home when inside it, else absolute."""
    shown, root = str(path), home.rstrip("/")
    if shown == (root or "/"):
        return "."
    return shown.removeprefix(f"{root}/")


def display_directory(home: str, path: Path | None) -> str:
    """A directory as `/info` shows it; None means home."""
    shown = "." if path is None else display(home, path)
    if shown == ".":
        return "~/"
    return f"{shown}/" if shown.startswith("/") else f"~/{shown}/"


class OpenedFile(NamedTuple):
    """A file a document was read from: its real path, and the digest of what was read."""

    real: str
    digest: str


@dataclass(frozen=True)
class Page:
    """A document as a session shows it. Menu targets are absolute."""

    document: Document
    provenance: Provenance
    """Where it came from when it was loaded: what it may do depends on nothing else."""
    sources: tuple[OpenedFile, ...] = ()
    """The files it was read from, its own first; none for a page that is not local."""
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
    manifest: AppManifest | None = None
    """The manifest that lists it; its relative links are looked up there first."""

    @property
    def uri(self) -> str:
        return self.document.uri

    @cached_property
    def path(self) -> Path | None:
        """The path of a local document as it was opened; None for a web page."""
        return path_of(self.uri)

    @property
    def directory(self) -> Path | None:
        """The directory of a local document, links followed."""
        return Path(self.sources[0].real).parent if self.sources else None

    def is_of_web_part(self, target: str) -> bool:
        """Whether a link is in a menu or an include that came from the web."""
        menus = (menu for menu in self.menus.values() if is_web(menu.uri))
        return any(entry.target == target for menu in menus for entry in menu.entries) or any(
            target in _targets(file) for file in self.includes.values()
        )

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """What its author should know, the first of it: every reply carries it."""
        found = self.document.each_warning(self.menus.values())
        first = tuple(islice(found, WARNINGS_SHOWN))
        more = next(found, None) is not None
        return (*first, "More warnings: stringd sfmd validate lists them all.") if more else first


class DocumentPlace(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """Where a document is, without what is there."""

    uri: str
    block: str | None = None
    public: bool = False
    """Whether it came from the public internet."""
    manifest: str | None = None
    """Address of the manifest that lists the document."""


class Location:
    """A document at a block: where a session is, or was. A restored one is not loaded."""

    __slots__ = ("_meta", "page", "place")

    def __init__(self, place: DocumentPlace, page: Page | None = None) -> None:
        self.place = place
        self.page = page
        self._meta: Meta | None = None

    @classmethod
    def of(cls, page: Page, block: str | None = None) -> "Location":
        """A loaded page, or a block of it."""
        manifest = page.manifest.url if page.manifest else None
        return cls(DocumentPlace(page.uri, block, page.public, manifest), page)

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

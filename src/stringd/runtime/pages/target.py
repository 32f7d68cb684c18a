"""From what was typed after `/open` to an address: a file that may be reached, or a URL."""

import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import unquote

from stringd.actions.provenance import ForeignFile, McpResource, is_foreign, owner
from stringd.documents import parse_target
from stringd.runtime.editing.paths import FilePath, is_there, locate, locate_named
from stringd.runtime.errors import CommandError
from stringd.runtime.packages.installed import Kind, installed, not_installed
from stringd.runtime.pages.shortcuts import owner_of_shortcut, resolve_shortcut
from stringd.runtime.pages.web import resolved
from stringd.runtime.topics.location import AppManifest, Page, is_web

if TYPE_CHECKING:
    from stringd.runtime.topics.call import Call

_SCHEME: Final = re.compile(r"(?i)[a-z][a-z0-9+.-]*://|(?:mailto|tel|sms|data|javascript):")
"""A file's name may hold a colon, so schemes without slashes are those links really use."""
_PACKAGE: Final = re.compile(r"(app|tool):([A-Za-z0-9_-]+)(?::[A-Za-z0-9_:-]+)?")
_BARE_WORD: Final = re.compile(r"[A-Za-z0-9_-]+")


FindFile = Callable[["Call", str, Path | None], FilePath]


class WebAddress(NamedTuple):
    """A URL. `may_be_private` says whether the caller asked for it, or a public page did."""

    url: str
    may_be_private: bool = True
    manifest: AppManifest | None = None
    """Where to look first: the manifest of the page that links to it."""


class Destination(NamedTuple):
    """Where `/open` goes. `typed` is how the caller named it; no address means this document."""

    typed: str
    address: FilePath | WebAddress | None
    block: str | None = None
    lines: tuple[int, int] | None = None

    @property
    def part(self) -> str:
        """What of the document is wanted, as it is written after its path; nothing for all."""
        if self.lines is not None:
            first, last = self.lines
            return f":L{first}" if first == last else f":L{first}-L{last}"
        return f"#{self.block}" if self.block else ""


def destination(call: "Call", target: str) -> Destination:
    """Understand a target: path, URL, `@shortcut` or package, each with `#block` or `:L5-L10`.

    Raises `CommandError`.
    """
    address, block, first, last = parse_target(target)
    lines = (first, last) if first is not None and last is not None else None
    wanted = unquote(block) if block else None
    if address.startswith("@"):
        return _through_shortcut(call, address, wanted)._replace(lines=lines)
    if not address:
        return Destination(target, None, wanted, lines)
    return Destination(address, resolve(call, address), wanted, lines)


def resolve(call: "Call", typed: str) -> FilePath | WebAddress:
    """The address a caller named. Raises `CommandError`."""
    if _BARE_WORD.fullmatch(typed) is not None:
        uri = installed(call.session.user.home, "app").get(typed)
        if uri is not None:
            return WebAddress(uri) if is_web(uri) else locate(call, uri)
    return _located(call, typed, locate_named)


def _through_shortcut(call: "Call", name: str, block: str | None) -> Destination:
    value = resolve_shortcut(call.session, name[1:])
    if value is None:
        raise CommandError("NOT_FOUND", f"Shortcut not found: {name}")
    if isinstance(value, tuple):
        raise CommandError(
            "INVALID_TARGET", f"{name} holds several values; pass it to an action instead."
        )
    target, _, fragment = value.partition("#")
    wanted = block or unquote(fragment) or None
    page = _open_page(call)
    if not target:
        return Destination(name, None, wanted)
    whose = owner_of_shortcut(call.session, name[1:])
    if is_foreign(whose) and (page is None or whose != owner(page.provenance)):
        return Destination(target, _from_foreign_answer(target), wanted)
    if page is not None and (
        is_web(page.uri) or isinstance(page.provenance, McpResource) or page.is_of_web_part(value)
    ):
        return Destination(target, _from_web_page(page, target), wanted)
    if "://" not in target and not target.startswith("/"):
        # Links in documents are written as URLs are: `my%20notes.md`.
        target = unquote(target)
    name = call.session.shown(target) if target.startswith("file://") else target
    found = _located(call, target)
    if (
        page is not None
        and isinstance(page.provenance, ForeignFile)
        and isinstance(found, WebAddress)
        and _PACKAGE.fullmatch(target) is None
    ):
        found = found._replace(may_be_private=False)
    return Destination(name, found, wanted)


def _from_foreign_answer(target: str) -> WebAddress:
    """Where a value leads that a page left which may be gone by now. Raises `CommandError`."""
    url = _web_url(target)
    if url is None:
        raise CommandError(
            "FILE_NOT_ALLOWED", f"A page left this; it may lead only to web addresses: {target}"
        )
    return WebAddress(url, may_be_private=False)


def _from_web_page(page: Page, target: str) -> WebAddress:
    """Where a web page's own link leads: to the web, and only to what its reader may reach."""
    url = _web_url(resolved(page.uri, target))
    if url is None:
        raise CommandError(
            "FILE_NOT_ALLOWED", f"A web page may link only to web addresses, not to {target}"
        )
    return WebAddress(url, may_be_private=not page.public, manifest=page.manifest)


def _located(call: "Call", typed: str, find: FindFile = locate) -> FilePath | WebAddress:
    """Where a name leads; `find` looks for files. Raises `CommandError`."""
    scheme = _SCHEME.match(typed)
    if scheme is not None:
        typed = scheme[0].lower() + typed[scheme.end() :]
    page = _open_page(call)
    package = _PACKAGE.fullmatch(typed)
    if package is not None:
        return _package(call, "app" if package[1] == "app" else "tool", package[2])
    url = _web_url(typed)
    if url is not None:
        return WebAddress(url)
    if typed.startswith(("~", "file://")):
        return locate(call, typed)
    if scheme is not None:
        raise CommandError("LOAD_ERROR", f"Unsupported URI scheme: {typed}")
    if page is not None and is_web(page.uri):
        return _from_web_page(page, typed)
    directory = call.session.document_directory()
    if call.session.directory is None or page is None:
        return find(call, typed, directory)
    with suppress(CommandError):
        beside = locate(call, typed, directory)
        if is_there(beside.real):
            return beside
    return find(call, typed, None)


def _web_url(typed: str) -> str | None:
    if typed.startswith("chanflow://"):
        return f"https://{typed.removeprefix('chanflow://')}"
    return typed if is_web(typed) else None


def _package(call: "Call", kind: Kind, name: str) -> FilePath | WebAddress:
    home = call.session.user.home
    uri = installed(home, kind).get(name)
    if uri is None:
        raise not_installed(home, kind, name)
    return WebAddress(uri) if is_web(uri) else locate(call, uri)


def _open_page(call: "Call") -> Page | None:
    location = call.session.location
    return location.page if location else None

"""The other pages of an app that is on the web: what its documents link to below their folder."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Final, NamedTuple
from urllib.parse import unquote, urlsplit

from stringd.documents import Document, parse
from stringd.documents.addresses import joined
from stringd.runtime.packages.install import InstallError

MAX_PAGES: Final = 200
MAX_BYTES: Final = 32 * 1024 * 1024
MAX_READ: Final = 1024 * 1024
"""Larger pages are taken along, and not read for links."""
_PAGE: Final = ".md"
_REQUIREMENTS: Final = "requirements.md"

Get = Callable[[str], Awaitable[bytes]]
"""Fetches an address. Raises `InstallError`."""


class LinkedPages(NamedTuple):
    """Pages by path below the folder of the first one, and those that could not be fetched."""

    files: dict[str, bytes]
    missing: tuple[str, ...]


async def linked_pages(first: bytes, url: str, get: Get, have: Mapping[str, bytes]) -> LinkedPages:
    """Follow links, menus and includes of a document at `url` to pages in and below its folder.

    Those in `have` are not fetched. Raises `InstallError` when it is more than an app.
    """
    base = joined(url, ".")
    own = _path(url, base)
    waiting = await asyncio.to_thread(_pages, first, url, base)
    optional = _requirements(first, waiting)
    waiting += optional
    known, size = {*waiting}, len(first)
    files, missing = dict[str, bytes](), list[str]()
    if own in known:
        waiting.remove(own)
        known.remove(own)
    while waiting:
        path = waiting.pop(0)
        address = joined(base, path)
        try:
            data = have.get(unquote(path)) or await get(address)
        except InstallError:
            missing += [path] if path not in optional else []
            continue
        files[unquote(path)] = data
        size += len(data)
        for page in await asyncio.to_thread(_pages, data, address, base):
            if page == own:
                # The first one is named as every package's is; this keeps the way back to it.
                files[unquote(page)] = first
            elif page not in known:
                known.add(page)
                waiting.append(page)
        if len(known) > MAX_PAGES or size > MAX_BYTES:
            raise InstallError(
                f"The pages of {url} are more than {MAX_PAGES} or {MAX_BYTES >> 20} MiB.\n"
                "Install it from an archive, or its address alone with /install --link."
            )
    return LinkedPages(files, tuple(missing))


def _requirements(first: bytes, linked: list[str]) -> list[str]:
    """The page that explains what an app needs is beside it without being linked to."""
    needs = parse(_decoded(first)).requires and _REQUIREMENTS not in linked
    return [_REQUIREMENTS] if needs else []


def _pages(data: bytes, url: str, base: str) -> list[str]:
    """Paths of the pages that a document names, each once, as they are written in addresses."""
    if len(data) > MAX_READ:
        return []
    document = parse(_decoded(data), url)
    targets = (joined(url, target) for target in _targets(document))
    paths = (_path(target, base) for target in targets)
    return [
        path for path in dict.fromkeys(paths) if path is not None and path.lower().endswith(_PAGE)
    ]


def _decoded(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _targets(document: Document) -> Iterator[str]:
    yield from (link.target for link in document.links if link.target and not link.image)
    yield from (each.path for each in document.directives)
    yield from (each.target for each in document.definitions)


def _path(address: str, base: str) -> str | None:
    """Where an address is below the folder; None for one that is elsewhere."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return None
    plain = parts._replace(query="", fragment="").geturl()
    if parts.query or not plain.startswith(base):
        return None
    path = plain.removeprefix(base)
    hidden = any(part.startswith(".") for part in unquote(path).split("/"))
    return None if not path or hidden or "\\" in unquote(path) else path

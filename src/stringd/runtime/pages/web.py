"""Loading documents from the web: Markdown as it is, HTML converted, manifests unpacked."""

import asyncio
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urljoin

from stringd.actions.conversion import PageLimitError, markdown_of
from stringd.actions.hosts import origin_of
from stringd.actions.network import PartsNetwork
from stringd.actions.provenance import WebPage
from stringd.documents import (
    Document,
    Included,
    IncludeFailure,
    Menu,
    parse,
    parse_menu,
)
from stringd.documents.addresses import is_endless, joined
from stringd.net.charsets import is_marked
from stringd.net.fetch import Fetched, FetchError, FetchRequest, HopJudge, OfflineError
from stringd.runtime.editing.text_file import LARGE_FILE_BYTES, is_binary
from stringd.runtime.errors import CommandError
from stringd.runtime.pages.action_context import stored_names
from stringd.runtime.pages.load import absolute_menu, check_menu, web_includes
from stringd.runtime.topics.location import (
    AppManifest,
    DocumentPlace,
    Page,
    Part,
    is_web,
    read_manifest,
)
from stringd.runtime.topics.permission import connection_judges

if TYPE_CHECKING:
    from stringd.net.cookies import CookieJar
    from stringd.runtime.topics.call import Call

ACCEPT: Final = "application/json, text/markdown, text/plain"
FETCH_SECONDS: Final = 30.0
MAX_INCLUDED_FILES: Final = 50
MAX_MENUS: Final = 50
"""Of one document; further ones stay empty, so that no page sends us around the whole web."""
CONVERTED: Final = (
    "Source: HTML auto-converted to markdown — the site does not serve text/markdown natively"
)


class PageSource(NamedTuple):
    """Where a page's files come from: its manifest first, else the web, as far as it may."""

    call: "Call"
    may_be_private: bool
    manifest: AppManifest | None = None
    judges: tuple[HopJudge, ...] = ()

    async def read(self, url: str) -> tuple[Included, bool]:
        """A further file of the page, and whether it came from the public internet.

        Raises `CommandError`.
        """
        part = self.manifest.find(url) if self.manifest else None
        if part is not None:
            return Included(url, (await self.text(url, part))[0]), not self.may_be_private
        answer = await self.get(url)
        return Included(answer.url, answer.text().removeprefix("\ufeff")), answer.public

    async def text(self, url: str, part: Part) -> tuple[str, str]:
        """The text of a file the manifest lists, and where it came from. Raises `CommandError`."""
        if part.content is not None:
            return part.content, url
        answer = await self.get(resolved(url, part.url or ""))
        return answer.text().removeprefix("\ufeff"), answer.url

    async def get(self, url: str, cookies: "CookieJar | None" = None) -> Fetched:
        """An answer of 2xx. Raises `CommandError`.

        Only what the reader opens is asked for with cookies, not what a page includes.
        """
        if not is_web(url):
            raise CommandError("LOAD_ERROR", f"Unsupported URI scheme: {url}")
        request = FetchRequest(
            "GET",
            url,
            {"Accept": ACCEPT},
            timeout=FETCH_SECONDS,
            may_be_private=self.may_be_private,
            judges=(*self.judges, *connection_judges(self.call.caller.permission)),
            cookies=cookies,
        )
        try:
            answer = await self.call.services.fetcher.fetch(request)
        except OfflineError as error:
            raise CommandError("LOAD_ERROR", f"HTTP loading is disabled: {url}") from error
        except FetchError as error:
            raise CommandError("LOAD_ERROR", f"Network error fetching {url}: {error}") from error
        if answer.status == 404:
            raise CommandError("NOT_FOUND", f"Not found: {url}")
        if not 200 <= answer.status < 300:
            raise CommandError("LOAD_ERROR", f"HTTP {answer.status} fetching {url}")
        if answer.truncated:
            raise CommandError(
                "LOAD_ERROR", f"Network error fetching {url}: more than {len(answer.body)} bytes"
            )
        return answer


async def load_web(
    call: "Call", url: str, *, may_be_private: bool = True, manifest: AppManifest | None = None
) -> Page:
    """Load a web document, from the manifest of the page that links to it if that lists it.

    Raises `CommandError`.
    """
    part = manifest.find(url) if manifest else None
    if manifest is not None and part is not None:
        return await _listed(PageSource(call, may_be_private, manifest), url, part)
    answer = await PageSource(call, may_be_private).get(url, call.session.cookies)
    found = read_manifest(answer.body, answer.url)
    if found is None:
        return await _complete(PageSource(call, not answer.public), await _page(answer))
    root = found.find(answer.url)
    if root is None:
        raise CommandError(
            "LOAD_ERROR",
            f'Manifest at {answer.url} is missing a "string.md" entry in files[]. '
            f"Declared: {found.named}",
        )
    return await _listed(PageSource(call, not answer.public, found), answer.url, root)


async def reload_web(call: "Call", place: DocumentPlace) -> Page:
    """Load a web document again, with its manifest if it came from one. Raises `CommandError`."""
    may_be_private = not place.public
    if place.manifest is None:
        return await load_web(call, place.uri, may_be_private=may_be_private)
    root = await load_web(call, place.manifest, may_be_private=may_be_private)
    if root.uri == place.uri:
        return root
    return await load_web(call, place.uri, may_be_private=may_be_private, manifest=root.manifest)


def may_have_web_parts(page: Page) -> bool:
    """Whether a local document may name menus or includes by their web address."""
    document = page.document
    return page.path is not None and (
        any(map(is_web, document.menus.values())) or any(document.included_files)
    )


async def with_web_parts(call: "Call", page: Page) -> Page:
    """A local page with the menus and includes it names by web address.

    A menu that cannot be fetched is empty. Raises `CommandError` for one that never ends.
    """
    if not may_have_web_parts(page):
        return page
    network = PartsNetwork(
        page.provenance, stored_names(call, page.document, page.provenance).usable
    )
    source = PageSource(call, may_be_private=True, judges=(network,))
    document = page.document
    wanted = [(name, path) for name, path in document.menus.items() if is_web(path)][:MAX_MENUS]
    found = await asyncio.gather(*(_menu(source, document, *each) for each in wanted))
    # It looks into every included file for what that includes.
    named = await asyncio.to_thread(lambda: list(web_includes(call, document)))
    includes, public = await _includes(source, named)
    menus = {**page.menus, **{menu.name: menu for menu, _ in found}}
    public = public or any(theirs for _, theirs in found)
    return replace(page, menus=menus, includes=includes, public=public)


def included_web(page: Page, path: str, base: str) -> Included | IncludeFailure:
    """What is included from the web; it was fetched with the page."""
    return page.includes.get((path, base)) or IncludeFailure("it could not be fetched")


def resolved(base: str, target: str) -> str:
    """A link of a page as a URL. Raises `CommandError` for what is none."""
    if is_endless(target):
        raise CommandError("LOAD_ERROR", f"Web address too long: {target[:80]}…")
    try:
        return urljoin(base, target)
    except ValueError as error:
        raise CommandError("LOAD_ERROR", f"Not a web address: {target}") from error


async def _listed(source: PageSource, url: str, part: Part) -> Page:
    manifest = source.manifest
    assert manifest is not None
    text, origin = await source.text(url, part)
    hint = manifest.install_hint if url == manifest.url else None
    provenance = WebPage(origin_of(origin), not source.may_be_private)
    page = Page(await explored(parse(text, url)), provenance, appendix=hint, manifest=manifest)
    return await _complete(source, page)


async def explored(document: Document) -> Document:
    """A document whose parts are known, if finding them takes long; found outside the loop."""
    if len(document.source) > LARGE_FILE_BYTES:
        await asyncio.to_thread(document.explore)
    return document


async def _page(answer: Fetched) -> Page:
    provenance = WebPage(origin_of(answer.url), answer.public)
    if "text/html" not in answer.content_type.lower():
        _check_text(answer)
        text = answer.text().removeprefix("\ufeff")
        return Page(await explored(parse(text, answer.url)), provenance)
    text = answer.text()
    try:
        markdown = await markdown_of(text)
    except PageLimitError as error:
        raise CommandError("LOAD_ERROR", f"Failed to read {answer.url}: {error}") from error
    document = await explored(parse(markdown, answer.url, original=text, converted=True))
    return Page(document, provenance, notice=CONVERTED)


def _check_text(answer: Fetched) -> None:
    if answer.charset is None and is_binary(answer.body) and not is_marked(answer.body):
        kind = answer.content_type or "of no declared type"
        raise CommandError(
            "LOAD_ERROR",
            f"Failed to read {answer.url}: it is a binary file ({len(answer.body)} bytes, {kind}).",
        )


async def _complete(source: PageSource, page: Page) -> Page:
    """Fetch what the page hangs on: menus and includes, side by side."""
    document = page.document
    named = islice(document.menus.items(), MAX_MENUS)
    found = await asyncio.gather(*(_menu(source, document, name, path) for name, path in named))
    empty = {name: Menu(name, path) for name, path in document.menus.items()}
    includes, _ = await _includes(source, _wanted(document))
    setup = document.requirements
    return replace(
        page,
        menus={**empty, **{menu.name: menu for menu, _ in found}},
        includes=includes,
        requirements=joined(page.uri, setup) if setup else None,
        public=not source.may_be_private,
    )


async def _menu(source: PageSource, document: Document, name: str, path: str) -> tuple[Menu, bool]:
    """A menu, and whether it came from the public internet; one that cannot be had is empty."""
    url = joined(document.uri, path)
    try:
        file, public = await source.read(url)
    except CommandError:
        file, public = Included(url, ""), False
    if len(file.source) > LARGE_FILE_BYTES:
        return await asyncio.to_thread(_read_menu, document, name, file), public
    return _read_menu(document, name, file), public


def _read_menu(document: Document, name: str, file: Included) -> Menu:
    check_menu(document, file)
    return absolute_menu(parse_menu(name, file.source, file.uri))


def _wanted(document: Document) -> Iterator[tuple[str, str]]:
    return ((path, document.uri) for path in document.included_files)


async def _includes(
    source: PageSource, wanted: Iterable[tuple[str, str]]
) -> tuple[dict[tuple[str, str], Included], bool]:
    """The included files that can be had in time, and whether any came from the public internet."""
    found: dict[tuple[str, str], Included | None] = {}
    public = True  # until every answer has said otherwise
    with suppress(TimeoutError):
        async with asyncio.timeout(FETCH_SECONDS):
            public = await _fetch_includes(source, wanted, found)
    return {key: file for key, file in found.items() if file is not None}, public


async def _fetch_includes(
    source: PageSource,
    wanted: Iterable[tuple[str, str]],
    found: dict[tuple[str, str], Included | None],
) -> bool:
    """Fetch included files, and what they include; None for one that cannot be had."""
    public = False
    for path, base in wanted:
        if (path, base) in found or len(found) >= MAX_INCLUDED_FILES:
            continue
        found[path, base] = None
        with suppress(CommandError):
            file, theirs = await source.read(joined(base, path))
            found[path, base] = file
            inner = source._replace(may_be_private=source.may_be_private and not theirs)
            document = await explored(parse(file.source, file.uri))
            further = await _fetch_includes(inner, _wanted(document), found)
            public = public or theirs or further
    return public

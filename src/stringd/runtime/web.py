"""Loading documents from the web: Markdown as it is, HTML converted, manifests unpacked."""

import asyncio
from typing import TYPE_CHECKING, Final
from urllib.parse import urljoin

import msgspec

from stringd.actions.fetch import Fetched, FetchError, Request
from stringd.documents import (
    Document,
    Included,
    IncludeFailure,
    Menu,
    html_to_markdown,
    parse,
    parse_menu,
)
from stringd.runtime.errors import CommandError
from stringd.runtime.loading import absolute_menu, check_menu_is_not
from stringd.runtime.page import Page, is_web

if TYPE_CHECKING:
    from stringd.runtime.commands.call import Call

ACCEPT: Final = "application/json, text/markdown, text/plain"
FETCH_SECONDS: Final = 30.0
MAX_INCLUDED_FILES: Final = 50
CONVERTED: Final = (
    "Source: HTML auto-converted to markdown — the site does not serve text/markdown natively"
)
LARGE_PAGE: Final = 256 * 1024
"""A page above this is converted outside the loop thread."""


async def load_web(call: "Call", url: str, *, may_be_private: bool = True) -> Page:
    """Load a web document. Raises `CommandError`."""
    answer = await _get(call, url, may_be_private=may_be_private)
    manifest = _manifest(answer)
    if manifest is not None:
        return await _from_manifest(call, answer, manifest)
    page = await _page(answer)
    return await _complete(call, page, private=not answer.public)


def included_web(page: Page, path: str, base: str) -> Included | IncludeFailure:
    """What a web page includes; it was fetched with the page."""
    return page.includes.get((path, base)) or IncludeFailure("it could not be fetched")


async def _page(answer: Fetched) -> Page:
    text = answer.text()
    if "text/html" not in answer.content_type.lower():
        return Page(parse(text.removeprefix("\ufeff"), answer.url))
    if len(text) > LARGE_PAGE:
        markdown = await asyncio.to_thread(html_to_markdown, text)
    else:
        markdown = html_to_markdown(text)
    document = parse(markdown, answer.url, original=text, converted=True)
    return Page(document, notice=CONVERTED)


async def _complete(call: "Call", page: Page, *, private: bool) -> Page:
    """Fetch what the page hangs on: menus and includes, side by side."""
    document = page.document
    menus = {}
    if document.menus:
        found = await asyncio.gather(
            *(
                _menu(call, document, name, path, private=private)
                for name, path in document.menus.items()
            )
        )
        menus = {menu.name: menu for menu in found}
    includes: dict[tuple[str, str], Included] = {}
    await _fetch_includes(call, document, includes, private=private)
    setup = document.requirements
    requirements = urljoin(page.uri, setup) if setup else None
    public = not private
    return Page(document, menus, includes, requirements, page.notice, page.appendix, public)


async def _menu(call: "Call", document: Document, name: str, path: str, *, private: bool) -> Menu:
    url = urljoin(document.uri, path)
    check_menu_is_not(document, url)
    try:
        answer = await _get(call, url, may_be_private=private)
    except CommandError:
        return Menu(name, url)
    return absolute_menu(parse_menu(name, answer.text(), answer.url))


async def _fetch_includes(
    call: "Call",
    document: Document,
    found: dict[tuple[str, str], Included],
    *,
    private: bool,
) -> None:
    for include in document.includes:
        key = (include.path and include.file, document.uri)
        if key in found or not include.path or len(found) >= MAX_INCLUDED_FILES:
            continue
        try:
            url = urljoin(document.uri, include.file)
            answer = await _get(call, url, may_be_private=private)
        except CommandError:
            continue
        found[key] = Included(answer.url, answer.text())
        inner = parse(found[key].source, answer.url)
        await _fetch_includes(call, inner, found, private=private)


async def _get(call: "Call", url: str, *, may_be_private: bool) -> Fetched:
    if not is_web(url):
        raise CommandError("LOAD_ERROR", f"Unsupported URI scheme: {url}")
    request = Request(
        "GET",
        url,
        {"Accept": ACCEPT},
        timeout=FETCH_SECONDS,
        may_be_private=may_be_private,
    )
    try:
        answer = await call.runtime.fetcher.fetch(request)
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


def _manifest(answer: Fetched) -> dict[str, object] | None:
    if not answer.body.lstrip().startswith(b"{"):
        return None
    try:
        value = msgspec.json.decode(answer.body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return value if isinstance(value, dict) and isinstance(value.get("files"), list) else None


async def _from_manifest(call: "Call", answer: Fetched, manifest: dict[str, object]) -> Page:
    """An install manifest opens as its `string.md`."""
    listed = manifest["files"]
    assert isinstance(listed, list)
    files = {str(entry.get("path")): entry for entry in listed if isinstance(entry, dict)}
    root = files.get("string.md")
    if root is None:
        names = ", ".join(list(files)[:5]) or "none"
        raise CommandError(
            "LOAD_ERROR",
            f'Manifest at {answer.url} is missing a "string.md" entry in files[]. '
            f"Declared: {names}",
        )
    content, url = root.get("content"), root.get("url")
    if isinstance(content, str):
        document = parse(content, urljoin(answer.url, "string.md"))
    else:
        inner = await _get(call, urljoin(answer.url, str(url)), may_be_private=not answer.public)
        document = parse(inner.text(), inner.url)
    hint = manifest.get("install_hint")
    page = Page(document, appendix=hint if isinstance(hint, str) else None)
    return await _complete(call, page, private=not answer.public)

"""`webfetch`: a page as text, with every hop's address checked before it is connected to."""

import asyncio
import re
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal
from urllib.parse import SplitResult, urljoin, urlsplit

from msgspec import Meta

from stringd.runs.guard.addresses import resolve
from stringd.runs.tools.base import Arguments, BuiltInTool
from stringd.runs.tools.context import ToolContext
from stringd.runs.tools.output import ToolFailure, ToolOutput

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import httpx2

_MAX_TEXT: Final = 50_000
_MAX_BODY: Final = 8 * 1024 * 1024
_MAX_HOPS: Final = 5
_RESOLVE_SECONDS: Final = 30.0
# As deep as browsers go. Parsers walk up from every block, so a deep page could take hours.
_MAX_DEPTH: Final = 512
_BLOCK_TAG: Final = re.compile(
    r"(?i)<(/?)(?:address|article|aside|blockquote|center|details|dialog|dir|div|dl|fieldset|figure"
    r"|figcaption|footer|form|header|hgroup|listing|main|menu|nav|ol|optgroup|pre|rp|rt|search"
    r"|section|summary|ul|xmp)(?=[\s/>])"
)
_REDIRECTS: Final = (301, 302, 303, 307, 308)
Format = Literal["text", "markdown", "html"]


class WebfetchArguments(Arguments, frozen=True):
    url: Annotated[str, Meta(min_length=1)]
    format: Format | None = None
    timeout: Annotated[float, Meta(gt=0, le=300, description="seconds")] | None = None


class FetchedPage:
    """What a server answered, as far as it was read."""

    def __init__(self, url: str, response: "httpx2.Response", body: bytes) -> None:
        self.url = url
        self.status = response.status_code
        self.reason = response.reason_phrase
        self.type = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        self.text = _decoded(body, response.charset_encoding)


class Webfetch(BuiltInTool[WebfetchArguments]):
    name = "webfetch"
    description = "Fetch a web page over HTTP or HTTPS, as markdown, text or html."
    takes = WebfetchArguments
    repeatable = True

    async def run(self, args: WebfetchArguments, context: ToolContext) -> ToolOutput:
        limit = args.timeout or 30.0
        url, granted = args.url, set[tuple[str, str]]()
        for _ in range(_MAX_HOPS + 1):
            url, parts = checked_url(url)
            address = await allowed_address(self.name, url, parts, context, granted)
            found = await _fetch(url, parts, address, limit)
            if isinstance(found, FetchedPage):
                return await _answer(found, args.format or "markdown")
            url = found
        raise ToolFailure("command_failed", f"More than {_MAX_HOPS} redirects: {args.url}")


async def allowed_address(
    tool: str, url: str, parts: SplitResult, context: ToolContext, granted: set[tuple[str, str]]
) -> str:
    """The address to connect to, public or allowed. Raises `Denied` or `ToolFailure`."""
    host = parts.hostname or ""
    try:
        async with asyncio.timeout(_RESOLVE_SECONDS):
            found = await resolve(host, parts.port or (443 if parts.scheme == "https" else 80))
    except (OSError, UnicodeError) as error:
        raise ToolFailure("command_failed", f"Cannot resolve {host}: {error}") from None
    # A site that sends us on to itself needs no second yes, unless its name moved meanwhile.
    site = (parts.netloc, found.address)
    if found.reach == "private" and site not in granted:
        details = {"url": url, "address": found.address, "why": ["not a public address"]}
        await context.desk.permissions.address(context.agent_name, tool, url, details)
        granted.add(site)
    return found.address


def checked_url(url: str) -> tuple[str, SplitResult]:
    """The address as it will be requested, `..` and all resolved. Raises `ToolFailure`."""
    import httpx2

    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and parts.hostname and (parts.port or True)
        plain = str(httpx2.URL(re.sub("(?i)%2e", ".", url)))
    except (ValueError, httpx2.InvalidURL):
        usable = False
    if not usable or re.search(r"[\x00-\x20\x7f]", url):
        raise ToolFailure("command_failed", f"Not an http or https address: {url[:200]!r}")
    if parts.username or parts.password:
        raise ToolFailure("command_failed", "Addresses with a user name in them are not fetched")
    return plain, urlsplit(plain)


async def _fetch(url: str, parts: SplitResult, address: str, limit: float) -> "FetchedPage | str":
    """One exchange: the page, or where it sends us. Raises `ToolFailure`."""
    import httpx2

    try:
        async with asyncio.timeout(limit), _response(url, parts, address) as response:
            if response.status_code in _REDIRECTS and "location" in response.headers:
                return urljoin(url, response.headers["location"])
            body = bytearray()
            async for chunk in response.aiter_bytes():
                body += chunk
                if len(body) > _MAX_BODY:
                    break
            return FetchedPage(url, response, bytes(body))
    except TimeoutError:
        raise ToolFailure("timeout", f"No answer from {url} within {limit:g} s") from None
    except (httpx2.HTTPError, httpx2.InvalidURL, UnicodeError) as error:
        raise ToolFailure("command_failed", f"Cannot fetch {url}: {error}") from None


@asynccontextmanager
async def _response(url: str, parts: SplitResult, address: str) -> "AsyncIterator[httpx2.Response]":
    """Connect to the very address that was checked; the name is only spoken, not resolved."""
    import httpx2

    host = f"[{address}]" if ":" in address else address
    port = f":{parts.port}" if parts.port else ""
    pinned = httpx2.URL(url).copy_with(host=host.strip("[]"))
    name = parts.hostname or ""
    spoken = f"[{name}]{port}" if ":" in name else f"{name}{port}"
    headers = {"Host": spoken, "User-Agent": "stringd", "Accept": "text/html, text/*, */*"}
    extensions = {"sni_hostname": name.encode("idna").decode("ascii")} if ":" not in name else {}
    async with (
        httpx2.AsyncClient(trust_env=False, follow_redirects=False, timeout=None) as client,
        client.stream("GET", pinned, headers=headers, extensions=extensions) as response,
    ):
        yield response


def _decoded(body: bytes, charset: str | None) -> str:
    try:
        return body.decode(charset or "utf-8", "replace")
    except LookupError:
        return body.decode("utf-8", "replace")


async def _answer(page: FetchedPage, wanted: Format) -> ToolOutput:
    text = page.text
    if "html" in page.type or (not page.type and text.lstrip()[:1] == "<"):
        text = await asyncio.to_thread(_converted, text, wanted)
    truncated = len(text) > _MAX_TEXT
    text = text[:_MAX_TEXT]
    good = 200 <= page.status < 300
    output = text if good else f"[HTTP {page.status} {page.reason}]\n{text}"
    if truncated:
        output += "\n(cut at 50000 characters)"
    data: dict[str, Any] = {"url": page.url, "status": page.status, "contentType": page.type}
    return ToolOutput(output, data={**data, "truncated": truncated})


def _converted(html: str, wanted: Format) -> str:
    if wanted == "html":
        return html
    if _too_deep(html):
        raise ToolFailure(
            "command_failed",
            f"The page is nested more than {_MAX_DEPTH} deep; it is not converted",
            next_step="ask for it with format html",
        )
    if wanted == "markdown":
        from html_to_markdown import convert

        return str(convert(html).content)
    from selectolax.lexbor import LexborHTMLParser

    tree = LexborHTMLParser(html)
    tree.strip_tags(["script", "style", "noscript", "template"])
    body = tree.body
    lines = (body.text(separator="\n") if body else "").splitlines()
    return "\n".join(line.strip() for line in lines if line.strip())


def _too_deep(html: str) -> bool:
    depth = 0
    for tag in _BLOCK_TAG.finditer(html):
        depth = max(0, depth - 1) if tag[1] else depth + 1
        if depth > _MAX_DEPTH:
            return True
    return False

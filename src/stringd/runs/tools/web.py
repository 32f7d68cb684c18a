"""`webfetch`: a page as text, with every hop's address checked before it is connected to."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any, Final
from urllib.parse import urlsplit

from msgspec import Meta

from stringd.net.addresses import Resolved
from stringd.net.fetch import (
    AddressRefusedError,
    Fetched,
    Fetcher,
    FetchError,
    FetchRequest,
    normalised,
)
from stringd.runs.guard.errors import Denied
from stringd.runs.tools.base import Arguments, BuiltInTool
from stringd.runs.tools.context import HtmlPort, ToolContext, WebFormat
from stringd.runs.tools.output import ToolFailure, ToolOutput

_MAX_TEXT: Final = 50_000
_MAX_HOPS: Final = 5
_RESOLVE_SECONDS: Final = 30.0
_HEADERS: Final = {"Accept": "text/html, text/*, */*"}


class WebfetchArguments(Arguments, frozen=True):
    url: Annotated[str, Meta(min_length=1)]
    format: WebFormat | None = None
    timeout: Annotated[float, Meta(gt=0, le=300, description="seconds")] | None = None


class Webfetch(BuiltInTool[WebfetchArguments]):
    name = "webfetch"
    description = "Fetch a web page over HTTP or HTTPS, as markdown, text or html."
    takes = WebfetchArguments
    repeatable = True
    effect = "reads"

    async def run(self, args: WebfetchArguments, context: ToolContext) -> ToolOutput:
        limit = args.timeout or 30.0
        url, granted = args.url, set[tuple[str, str]]()
        async with fetcher_of(context) as fetcher:
            for _ in range(_MAX_HOPS + 1):
                url = checked_url(url)
                target = await allowed_target(self.name, url, context, fetcher, granted)
                page, redirected = await _exchange(fetcher, url, target, limit)
                if redirected is None:
                    return await _answer(page, args.format or "markdown", context.desk.ports.html)
                url = redirected.url
        raise ToolFailure("command_failed", f"More than {_MAX_HOPS} redirects: {args.url}")


@asynccontextmanager
async def fetcher_of(context: ToolContext) -> AsyncIterator[Fetcher]:
    """The daemon's fetcher, or one for this call."""
    if context.desk.ports.fetcher is not None:
        yield context.desk.ports.fetcher
        return
    fetcher = Fetcher()
    try:
        yield fetcher
    finally:
        await fetcher.close()


async def allowed_target(
    tool: str, url: str, context: ToolContext, fetcher: Fetcher, granted: set[tuple[str, str]]
) -> Resolved:
    """The addresses to connect to, public or allowed. Raises `Denied` or `ToolFailure`."""
    try:
        async with asyncio.timeout(_RESOLVE_SECONDS):
            found = await fetcher.resolve(url)
    except AddressRefusedError as refused:
        raise Denied(str(refused)) from None
    except TimeoutError:
        raise ToolFailure("command_failed", f"Cannot resolve {urlsplit(url).hostname}") from None
    except FetchError as error:
        reason = str(error)
        raise ToolFailure("command_failed", reason[:1].upper() + reason[1:]) from None
    # A site that sends us on to itself needs no second yes, unless its name moved meanwhile.
    site = (urlsplit(url).netloc, found.addresses[0])
    if found.reach != "public" and site not in granted:
        details = {"url": url, "address": found.addresses[0], "why": ["not a public address"]}
        await context.desk.permissions.address(context.agent_name, tool, url, details)
        granted.add(site)
    return found._replace(addresses=found.addresses[:1])


def checked_url(url: str) -> str:
    """The address as it will be requested, `..` and all resolved. Raises `ToolFailure`."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and parts.hostname and (parts.port or True)
        plain = normalised(re.sub("(?i)%2e", ".", url))
    except ValueError:
        usable = False
    if not usable or re.search(r"[\x00-\x20\x7f]", url):
        raise ToolFailure("command_failed", f"Not an http or https address: {url[:200]!r}")
    if parts.username or parts.password:
        raise ToolFailure("command_failed", "Addresses with a user name in them are not fetched")
    return plain


async def _exchange(
    fetcher: Fetcher, url: str, target: Resolved, limit: float
) -> tuple[Fetched, FetchRequest | None]:
    """One hop. Raises `ToolFailure`."""
    try:
        async with asyncio.timeout(limit):
            return await fetcher.exchange(FetchRequest("GET", url, _HEADERS), target)
    except TimeoutError:
        raise ToolFailure("timeout", f"No answer from {url} within {limit:g} s") from None
    except FetchError as error:
        raise ToolFailure("command_failed", f"Cannot fetch {url}: {error}") from None


async def _answer(page: Fetched, wanted: WebFormat, html: HtmlPort | None) -> ToolOutput:
    text = page.text()
    kind = page.content_type.partition(";")[0].strip().lower()
    if wanted != "html" and ("html" in kind or (not kind and text.lstrip()[:1] == "<")):
        text = await _converted(text, wanted, html)
    truncated = len(text) > _MAX_TEXT
    text = text[:_MAX_TEXT]
    good = 200 <= page.status < 300
    output = text if good else f"[HTTP {page.status} {page.reason}]\n{text}"
    if truncated:
        output += "\n(cut at 50000 characters)"
    data: dict[str, Any] = {"url": page.url, "status": page.status, "contentType": kind}
    return ToolOutput(output, data={**data, "truncated": truncated})


async def _converted(text: str, wanted: WebFormat, html: HtmlPort | None) -> str:
    if html is None:
        raise ToolFailure(
            "command_failed",
            "Pages cannot be converted here",
            next_step="ask for it with format html",
        )
    return await html(text, wanted)

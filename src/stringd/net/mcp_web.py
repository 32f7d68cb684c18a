"""MCP servers by URL: their connections, and a bound on what they send."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, cast
from urllib.request import getproxies, proxy_bypass

import httpx2

from stringd.net.addresses import Resolved
from stringd.net.fetch import FetchError
from stringd.net.mcp_budget import MAX_MESSAGE_BYTES, FloodError, MessageBudget, too_large

Streams = tuple[Any, Any]
Flooded = Callable[[FloodError], None]
Resolve = Callable[[str], Awaitable[Resolved]]
"""Where a URL leads; raises `FetchError` for an address that may not be asked."""


class _LimitedBody(httpx2.AsyncByteStream):
    """An answer that is one message; the SDK reads it whole."""

    def __init__(self, inner: httpx2.AsyncByteStream, flooded: Flooded) -> None:
        self._inner = inner
        self._flooded = flooded

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for piece in self._inner:
            size += len(piece)
            if size > MAX_MESSAGE_BYTES:
                error = too_large()
                self._flooded(error)
                raise httpx2.ReadError(str(error))
            yield piece

    async def aclose(self) -> None:
        await self._inner.aclose()


class _JudgedTransport(httpx2.AsyncHTTPTransport):
    """Looks a name up for each request and asks exactly the address that was judged.

    A name may lead elsewhere the next time, so judging it once before connecting is not enough.
    """

    def __init__(self, resolve: Resolve) -> None:
        super().__init__()
        self._resolve = resolve

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        try:
            target = await self._resolve(str(request.url))
        except FetchError as error:
            raise httpx2.ConnectError(str(error), request=request) from error
        for address in target.addresses[:-1]:
            try:
                return await super().handle_async_request(_addressed(request, address))
            except (httpx2.ConnectError, httpx2.ConnectTimeout):
                continue
        return await super().handle_async_request(_addressed(request, target.addresses[-1]))


def _addressed(request: httpx2.Request, address: str) -> httpx2.Request:
    """The same request to an address. Its `Host` and its certificate's name stay what they were."""
    name = request.url.raw_host.decode("ascii")
    return httpx2.Request(
        request.method,
        request.url.copy_with(host=address),
        headers=request.headers,
        stream=request.stream,
        extensions={**request.extensions, "sni_hostname": name},
    )


def _proxy_for(url: httpx2.URL) -> str | None:
    """The proxy that the owner's environment names for a URL; it looks the name up itself."""
    named = getproxies()
    found = named.get(url.scheme) or named.get("all")
    if not found or proxy_bypass(url.host):
        return None
    return found if "://" in found else f"http://{found}"


def http_client(
    url: str,
    headers: Mapping[str, str],
    timeout: httpx2.Timeout,
    *,
    resolve: Resolve,
    printed: Callable[[bytes], None],
    flooded: Flooded,
) -> httpx2.AsyncClient:
    """A client whose answers have an end. `printed` gets each status that is an error, once."""
    proxy = _proxy_for(httpx2.URL(url))
    told: set[str] = set()

    async def look_at(response: httpx2.Response) -> None:
        status = f"HTTP {response.status_code} {response.reason_phrase}\n"
        if response.is_error and status not in told:
            told.add(status)
            printed(status.encode())
        # Of a stream of events each has a limit of its own.
        if not response.headers.get("content-type", "").startswith("text/event-stream"):
            response.stream = _LimitedBody(cast("httpx2.AsyncByteStream", response.stream), flooded)

    return httpx2.AsyncClient(
        headers=dict(headers),
        timeout=timeout,
        event_hooks={"response": [look_at]},
        proxy=proxy,
        transport=None if proxy else _JudgedTransport(resolve),
    )


@asynccontextmanager
async def metered(
    transport: AbstractAsyncContextManager[Streams], flooded: Flooded
) -> AsyncIterator[Streams]:
    """The same streams, read at the pace the budget allows."""
    import anyio

    async with transport as (theirs, write):
        received, read = anyio.create_memory_object_stream[Any](0)
        passing = asyncio.create_task(_pass_on(theirs, received, flooded))
        try:
            yield read, write
        finally:
            passing.cancel()
            await asyncio.gather(passing, return_exceptions=True)
            read.close()


async def _pass_on(theirs: Any, received: Any, flooded: Flooded) -> None:
    import anyio

    budget = MessageBudget()
    with received:
        try:
            async for message in theirs:
                await received.send(message)
                if pause := budget.spend():
                    await asyncio.sleep(pause)
        except FloodError as error:
            flooded(error)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            return

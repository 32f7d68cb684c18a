"""MCP servers by URL: their connections, and a bound on what they send."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, cast

import httpx2

from stringd.net.mcp_budget import MAX_MESSAGE_BYTES, FloodError, MessageBudget, too_large

Streams = tuple[Any, Any]
Flooded = Callable[[FloodError], None]


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


def http_client(
    headers: Mapping[str, str],
    timeout: httpx2.Timeout,
    *,
    printed: Callable[[bytes], None],
    flooded: Flooded,
) -> httpx2.AsyncClient:
    """A client whose answers have an end. `printed` gets each status that is an error, once."""
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
        headers=dict(headers), timeout=timeout, event_hooks={"response": [look_at]}
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

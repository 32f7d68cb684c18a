"""Ends a stream of events where its last event says so, even if the connection stays open.

The rest is waited for a moment: a body read to its end lets the connection be used again.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import Final, cast

import httpx2

_LAST_EVENT: Final = b"event: message_stop"
_LINGER_SECONDS: Final = 1.0


class _Body(httpx2.AsyncByteStream):
    def __init__(self, inner: httpx2.AsyncByteStream) -> None:
        self._inner = inner

    async def __aiter__(self) -> AsyncIterator[bytes]:
        pieces = aiter(self._inner)
        tail, patience = b"", None
        while True:
            try:
                async with asyncio.timeout(patience):
                    piece = await anext(pieces)
            except (StopAsyncIteration, TimeoutError):
                return
            yield piece
            tail = (tail + piece)[-1024:]
            if tail.endswith((b"\n\n", b"\r\n\r\n")) and _LAST_EVENT in tail:
                patience = _LINGER_SECONDS

    async def aclose(self) -> None:
        await self._inner.aclose()


async def end_with_last_event(response: httpx2.Response) -> None:
    """A hook for clients whose library reads on until the server closes the connection."""
    if response.headers.get("content-type", "").startswith("text/event-stream"):
        response.stream = _Body(cast(httpx2.AsyncByteStream, response.stream))

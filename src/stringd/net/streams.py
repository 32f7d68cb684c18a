"""Requests whose answer is read piece by piece, to servers the owner of the daemon chose.

Redirects are not followed: a request to a model server holds a key. The proxies and certificates
of the environment count, as for any other program of the owner.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Final

from stringd.net.fetch import CONNECT_SECONDS, FetchError, HostUnreachableError

if TYPE_CHECKING:
    import ssl

    import httpx2

SILENCE_SECONDS: Final = 600.0
"""A model may think long before its first word."""
_KEPT_CONNECTIONS: Final = 100
_MAX_WHOLE_BYTES: Final = 1024 * 1024


class StreamedAnswer:
    """An answer whose head has arrived."""

    def __init__(self, response: "httpx2.Response") -> None:
        self._response = response
        self.status = response.status_code
        self.headers: Mapping[str, str] = response.headers
        self.content_type = response.headers.get("content-type", "")

    async def pieces(self) -> AsyncGenerator[bytes, None]:
        """The body as it arrives. Raises `FetchError` where it breaks off."""
        import httpx2

        try:
            async for piece in self._response.aiter_bytes():
                if piece:
                    yield piece
        except (httpx2.HTTPError, OSError) as error:
            raise FetchError(_reason(error)) from error

    async def whole(self) -> bytes:
        """The first megabyte of the body. Raises `FetchError`."""
        body = bytearray()
        async for piece in self.pieces():
            body += piece
            if len(body) > _MAX_WHOLE_BYTES:
                break
        return bytes(body)


class StreamClient:
    """Keeps connections between requests. `silence` is how many seconds a server may say nothing.

    Nothing is loaded before the first request.
    """

    def __init__(self, silence: float = SILENCE_SECONDS) -> None:
        self._silence = silence
        self._client: httpx2.AsyncClient | None = None
        self._opening: asyncio.Lock | None = None

    @asynccontextmanager
    async def post(
        self, url: str, headers: Mapping[str, str], body: bytes
    ) -> AsyncIterator[StreamedAnswer]:
        """Send a request; leaving the context ends the answer.

        Raises `HostUnreachableError` when nobody took the connection, else `FetchError`.
        """
        client = self._client or await self._opened()
        import httpx2

        try:
            request = client.build_request("POST", url, headers=headers, content=body)
            response = await client.send(request, stream=True)
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            raise HostUnreachableError(_reason(error)) from error
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
            raise FetchError(_reason(error)) from error
        try:
            yield StreamedAnswer(response)
        finally:
            await response.aclose()

    async def close(self) -> None:
        """Close every connection."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def _opened(self) -> "httpx2.AsyncClient":
        self._opening = self._opening or asyncio.Lock()
        async with self._opening:
            if self._client is None:
                # Reading certificates blocks for tens of milliseconds, importing for longer.
                self._client = await asyncio.to_thread(_client, self._silence)
        return self._client


@cache
def _certificates() -> "ssl.SSLContext":
    """Read once: it is most of what a new client costs."""
    import httpx2

    return httpx2.create_ssl_context()


def _client(silence: float) -> "httpx2.AsyncClient":
    import httpx2

    # What it would import with its first request, on the loop.
    with suppress(ImportError):
        import_module("anyio._backends._asyncio")
    return httpx2.AsyncClient(
        verify=_certificates(),
        timeout=httpx2.Timeout(silence, connect=CONNECT_SECONDS, pool=None),
        limits=httpx2.Limits(max_connections=None, max_keepalive_connections=_KEPT_CONNECTIONS),
        follow_redirects=False,
    )


def _reason(error: Exception) -> str:
    import httpx2

    if isinstance(error, httpx2.ReadTimeout):
        return "it said nothing for too long"
    return str(error) or type(error).__name__

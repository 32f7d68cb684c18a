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
_POOL_SIZE: Final = 16
# An agent's tools may take this long between two requests.
_KEPT_SECONDS: Final = 60.0
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
        self._pools: list[_Pool] = []
        self._loaded = False
        self._loading: asyncio.Lock | None = None

    @asynccontextmanager
    async def post(
        self, url: str, headers: Mapping[str, str], body: bytes
    ) -> AsyncIterator[StreamedAnswer]:
        """Send a request; leaving the context ends the answer.

        Raises `HostUnreachableError` when nobody took the connection, else `FetchError`.
        """
        if not self._loaded:
            await self._load()
        pool = self._pool()
        pool.busy += 1
        try:
            response = await pool.send(url, headers, body)
            try:
                yield StreamedAnswer(response)
            finally:
                await response.aclose()
        finally:
            pool.busy -= 1

    async def close(self) -> None:
        """Close every connection."""
        pools, self._pools = self._pools, []
        for pool in pools:
            await pool.client.aclose()

    def _pool(self) -> "_Pool":
        """The first that has room, so that its connections are used again."""
        for pool in self._pools:
            if pool.busy < _POOL_SIZE:
                return pool
        self._pools.append(_Pool(_client(self._silence)))
        return self._pools[-1]

    async def _load(self) -> None:
        self._loading = self._loading or asyncio.Lock()
        async with self._loading:
            if not self._loaded:
                # Reading certificates blocks for tens of milliseconds, importing for longer.
                await asyncio.to_thread(_certificates)
                self._loaded = True


class _Pool:
    """Some of the connections: the library looks through all of a client's for every request."""

    def __init__(self, client: "httpx2.AsyncClient") -> None:
        self.client = client
        self.busy = 0

    async def send(self, url: str, headers: Mapping[str, str], body: bytes) -> "httpx2.Response":
        import httpx2

        try:
            request = self.client.build_request("POST", url, headers=headers, content=body)
            return await self.client.send(request, stream=True)
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            raise HostUnreachableError(_reason(error)) from error
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
            raise FetchError(_reason(error)) from error


@cache
def _certificates() -> "ssl.SSLContext":
    """Read once: it is most of what a new client costs."""
    import httpx2

    # What a client would import with its first request, on the loop.
    with suppress(ImportError):
        import_module("anyio._backends._asyncio")
    return httpx2.create_ssl_context()


def _client(silence: float) -> "httpx2.AsyncClient":
    import httpx2

    return httpx2.AsyncClient(
        verify=_certificates(),
        timeout=httpx2.Timeout(silence, connect=CONNECT_SECONDS, pool=None),
        limits=httpx2.Limits(
            max_connections=None,
            max_keepalive_connections=_POOL_SIZE,
            keepalive_expiry=_KEPT_SECONDS,
        ),
        follow_redirects=False,
    )


def _reason(error: Exception) -> str:
    import httpx2

    if isinstance(error, httpx2.ReadTimeout):
        return "it said nothing for too long"
    return str(error) or type(error).__name__

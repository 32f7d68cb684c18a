"""The one door to the network: limits on time and size, and no way in through a redirect.

A caller may ask for any address, this machine's own included. A public page may not: neither a
redirect nor a link of it leads to a private address. The name is resolved here, judged, and the
connection goes to exactly that address.
"""

import asyncio
import ipaddress
import socket
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urljoin, urlsplit

from stringd.net.charsets import decoded

if TYPE_CHECKING:
    import httpx2

MAX_REDIRECTS: Final = 10
CONNECT_SECONDS: Final = 10.0
"""An address that takes longer is not waited for while there is another."""
MAX_RESPONSE_BYTES: Final = 10 * 1024 * 1024
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_BODY_HEADERS: Final = frozenset({"content-length", "content-type", "transfer-encoding"})


class FetchError(Exception):
    """The request failed before there was an answer; `str()` is the reason."""


class HostUnreachableError(FetchError):
    """Nobody took the connection: nothing was sent."""


class Fetched(NamedTuple):
    """A whole answer. `url` is where the last redirect led; `public` tells whose address it was."""

    status: int
    url: str
    content_type: str
    body: bytes
    charset: str | None
    public: bool
    truncated: bool

    def text(self) -> str:
        """The body as it marks or declares itself, else as it looks."""
        return decoded(self.body, self.charset, html="text/html" in self.content_type.lower())


class FetchRequest(NamedTuple):
    """What to ask. Headers other than `Accept` go only to the host that was asked first."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes | None = None
    timeout: float = 60.0
    may_be_private: bool = True


def is_public(address: str) -> bool:
    """Whether an IP address belongs to the public internet."""
    ip = ipaddress.ip_address(address.partition("%")[0])
    mapped = ip.ipv4_mapped if isinstance(ip, ipaddress.IPv6Address) else None
    return (mapped or ip).is_global and not ip.is_multicast


class Fetcher:
    """Keeps connections between requests; made once, closed with the daemon."""

    def __init__(self, public: Callable[[str], bool] = is_public) -> None:
        self._client: httpx2.AsyncClient | None = None
        self._public = public

    async def fetch(self, request: FetchRequest) -> Fetched:
        """Follow redirects to an answer. Raises `FetchError`."""
        try:
            async with asyncio.timeout(request.timeout):
                return await self._follow(request)
        except TimeoutError as error:
            raise FetchError(f"timed out after {request.timeout:g} s") from error

    async def close(self) -> None:
        """Close every connection."""
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    async def _follow(self, request: FetchRequest) -> Fetched:
        may_be_private = request.may_be_private
        for _ in range(MAX_REDIRECTS + 1):
            addresses, public = await self._resolve(request.url, may_be_private=may_be_private)
            answer, location = await self._send_to_any(request, addresses, public=public)
            if location is None:
                return answer
            may_be_private = may_be_private and not public
            request = _redirected(request, answer.status, location)
        raise FetchError(f"more than {MAX_REDIRECTS} redirects")

    async def _resolve(self, url: str, *, may_be_private: bool) -> tuple[list[str], bool]:
        host, port = _host_and_port(url)
        addresses = [host] if _is_address(host) else await _looked_up(host, port)
        public = all(map(self._public, addresses))
        if not public and not may_be_private:
            raise FetchError(f"a public page may not lead to the private address {host}")
        return addresses, public

    async def _send_to_any(
        self, request: FetchRequest, addresses: list[str], *, public: bool
    ) -> tuple[Fetched, str | None]:
        """Ask the first address that takes the connection: `localhost` has two, often one works."""
        for address in addresses[:-1]:
            try:
                return await self._send(request, address, public=public)
            except HostUnreachableError:
                continue
        return await self._send(request, addresses[-1], public=public)

    async def _send(
        self, request: FetchRequest, address: str, *, public: bool
    ) -> tuple[Fetched, str | None]:
        import httpx2

        parts = urlsplit(request.url)
        named = parts.netloc.rpartition("@")[2]
        headers = [(b"Host", named.encode("ascii", "replace")), *_encoded(request.headers)]
        try:
            pinned = httpx2.URL(request.url).copy_with(host=address, fragment=None)
            async with self._connected().stream(
                request.method,
                pinned,
                headers=headers,
                content=request.body,
                extensions={"sni_hostname": parts.hostname},
            ) as response:
                body, truncated = await _limited(response)
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            raise HostUnreachableError(str(error) or type(error).__name__) from error
        except httpx2.HTTPError as error:
            raise FetchError(str(error) or type(error).__name__) from error
        except httpx2.InvalidURL as error:
            raise FetchError(str(error)) from error
        location = response.headers.get("location")
        kind = response.headers.get("content-type", "")
        answer = Fetched(
            response.status_code,
            request.url,
            kind,
            body,
            response.charset_encoding,
            public,
            truncated,
        )
        return answer, location if response.status_code in _REDIRECTS else None

    def _connected(self) -> "httpx2.AsyncClient":
        if self._client is None:
            import httpx2

            self._client = httpx2.AsyncClient(
                headers={"User-Agent": "stringd"},
                follow_redirects=False,
                timeout=httpx2.Timeout(None, connect=CONNECT_SECONDS),
                trust_env=False,
                cookies=None,
            )
        # Every request stands for itself: what one server sets, no other call sends.
        self._client.cookies.clear()
        return self._client


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


async def _looked_up(host: str, port: int) -> list[str]:
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise FetchError(f"cannot resolve {host}") from error
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def _host_and_port(url: str) -> tuple[str, int]:
    """Whom a URL asks. Raises `FetchError` for what is no web address."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise FetchError(f"not an http address: {url}") from error
    if parts.scheme not in ("http", "https") or not host:
        raise FetchError(f"not an http address: {url}")
    return host, port or 0


async def _limited(response: "httpx2.Response") -> tuple[bytes, bool]:
    body = bytearray()
    async for chunk in response.aiter_bytes():
        body += chunk
        if len(body) > MAX_RESPONSE_BYTES:
            return bytes(body[:MAX_RESPONSE_BYTES]), True
    return bytes(body), False


def _encoded(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    """Header lines as bytes; what is not ASCII is sent as UTF-8."""
    return [
        (n.encode("utf-8", "replace"), v.encode("utf-8", "replace")) for n, v in headers.items()
    ]


def _redirected(request: FetchRequest, status: int, location: str) -> FetchRequest:
    """The request a redirect asks for. Another host gets no headers that may hold secrets."""
    try:
        url = urljoin(request.url, location)
        before, after = urlsplit(request.url), urlsplit(url)
    except ValueError as error:
        raise FetchError(f"redirected to {location}, which is no address") from error
    headers = dict(request.headers)
    elsewhere = (before.scheme, before.netloc) != (after.scheme, after.netloc)
    if elsewhere:
        headers = {key: value for key, value in headers.items() if key.lower() == "accept"}
    if status == 303 or (status in (301, 302) and request.method == "POST"):
        kept = {key: value for key, value in headers.items() if key.lower() not in _BODY_HEADERS}
        return request._replace(method="GET", url=url, headers=kept, body=None)
    if elsewhere and request.body is not None:
        raise FetchError(
            f"redirected to {after.netloc}; what was sent is not sent on to another host"
        )
    return request._replace(url=url, headers=headers)

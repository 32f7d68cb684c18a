"""The one door to the network: limits on time and size, and no way in through a redirect.

A caller may ask for any address, this machine's own included. A public page may not: neither a
redirect nor a link of it leads to a private address. Nobody reaches a cloud metadata service or a
port of the daemon itself. The name is resolved here, judged, and the connection goes to exactly
that address.
"""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol
from urllib.parse import urljoin, urlsplit

from stringd.net.addresses import Reach, Resolved, classify, resolve
from stringd.net.charsets import decoded
from stringd.net.cookies import CookieJar
from stringd.net.hosts import Host

if TYPE_CHECKING:
    import ssl

    import httpx2

MAX_REDIRECTS: Final = 10
CONNECT_SECONDS: Final = 10.0
"""An address that takes longer is not waited for while there is another."""
MAX_URL: Final = 64 * 1024
MAX_RESPONSE_BYTES: Final = 10 * 1024 * 1024
_PORTS: Final = {"http": 80, "https": 443}
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_BODY_HEADERS: Final = frozenset({"content-length", "content-type", "transfer-encoding"})


OFFLINE: Final = (
    "HTTP is switched off. The owner of the daemon can start it without STRINGD_HTTP_LOADING=0."
)


class FetchError(Exception):
    """The request failed before there was an answer; `str()` is the reason."""


class OfflineError(FetchError):
    """The owner lets nothing be fetched: nothing was sent."""


class HostUnreachableError(FetchError):
    """Nobody took the connection: nothing was sent."""


class AddressRefusedError(FetchError):
    """The address is not one this request may reach: nothing was sent."""


class Fetched(NamedTuple):
    """A whole answer. `url` is where the last redirect led; `public` tells whose address it was."""

    status: int
    url: str
    content_type: str
    body: bytes
    charset: str | None
    public: bool
    truncated: bool
    reason: str = ""

    def text(self) -> str:
        """The body as it marks or declares itself, else as it looks."""
        return decoded(self.body, self.charset, html="text/html" in self.content_type.lower())


class HopJudge(Protocol):
    """Judges every connection of a request: the first, and each that a redirect leads to."""

    def named(self, url: str, *, first: bool) -> None:
        """Before the name is looked up. Raises `FetchError`."""

    async def found(self, url: str, target: Resolved) -> None:
        """Before the connection is opened; may take its time. Raises `FetchError`."""


class FetchRequest(NamedTuple):
    """What to ask. Headers other than `Accept` go only to the host that was asked first."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes | None = None
    timeout: float = 60.0
    may_be_private: bool = True
    judges: tuple[HopJudge, ...] = ()
    cookies: CookieJar | None = None
    """Where cookies come from and go to; without it there are none."""


class _Patience:
    """The seconds a request has, without those its judges take."""

    def __init__(self, seconds: float) -> None:
        self._all = self._left = seconds

    @asynccontextmanager
    async def spent(self, url: str) -> AsyncIterator[None]:
        clock = asyncio.get_running_loop().time
        began = clock()
        try:
            async with asyncio.timeout(max(0.0, self._left)):
                yield
        except TimeoutError as error:
            raise FetchError(f"timed out after {self._all:g} s: {_where(url)}") from error
        finally:
            self._left -= clock() - began


class Fetcher:
    """Keeps connections between requests; made once, closed with the daemon.

    One that is not `online` refuses every request, with how to change that; MCP servers by URL ask
    it before they are connected to. `certificates` are those to believe, by default the usual ones.
    """

    def __init__(
        self,
        judge: Callable[[str], Reach] = classify,
        *,
        online: bool = True,
        certificates: "ssl.SSLContext | None" = None,
    ) -> None:
        self._client: httpx2.AsyncClient | None = None
        self._judge = judge
        self._online = online
        self._certificates = certificates

    async def fetch(self, request: FetchRequest) -> Fetched:
        """Follow redirects to an answer. Raises `FetchError`."""
        self._refuse_offline()
        may_be_private, patience = request.may_be_private, _Patience(request.timeout)
        for number in range(MAX_REDIRECTS + 1):
            for judge in request.judges:
                judge.named(request.url, first=number == 0)
            async with patience.spent(request.url):
                target = await self.resolve(request.url)
            if target.reach != "public" and not may_be_private:
                host = _host_and_port(request.url)[0]
                raise AddressRefusedError(
                    f"a public page may not lead to the private address {host}"
                )
            for judge in request.judges:
                await judge.found(request.url, target)
            async with patience.spent(request.url):
                answer, redirected = await self.exchange(request, target)
            if redirected is None:
                return answer
            may_be_private = may_be_private and not answer.public
            request = redirected
        raise FetchError(f"more than {MAX_REDIRECTS} redirects")

    async def resolve(self, url: str) -> Resolved:
        """Where a URL leads. Raises `FetchError`, also for addresses nobody may reach."""
        self._refuse_offline()
        host, port = _host_and_port(url)
        try:
            found = await resolve(host, port, self._judge)
        except (OSError, UnicodeError) as error:
            raise FetchError(f"cannot resolve {Host(host, port)}") from error
        if found.reach == "metadata":
            raise AddressRefusedError(f"{host} is a cloud metadata service; it is never fetched")
        if found.reach == "daemon":
            raise AddressRefusedError(
                f"{host}:{port} is a port of this daemon; it is never fetched"
            )
        return found

    async def exchange(
        self, request: FetchRequest, target: Resolved
    ) -> tuple[Fetched, FetchRequest | None]:
        """One answer, and the request it redirects to. Raises `FetchError`.

        For callers that judge every hop themselves. Asks the first address that takes the
        connection: `localhost` has two, often one works.
        """
        self._refuse_offline()
        public = target.reach == "public"
        for address in target.addresses[:-1]:
            try:
                return await self._send(request, address, public=public)
            except HostUnreachableError:
                continue
        return await self._send(request, target.addresses[-1], public=public)

    async def close(self) -> None:
        """Close every connection."""
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    def _refuse_offline(self) -> None:
        """Whatever asks for the network asks here first."""
        if not self._online:
            raise OfflineError(OFFLINE)

    async def _send(
        self, request: FetchRequest, address: str, *, public: bool
    ) -> tuple[Fetched, FetchRequest | None]:
        import httpx2

        try:
            named = httpx2.URL(request.url)
            # Connections are kept by address. Another host may share it, and the certificate of
            # this one says nothing about that host.
            once = [(b"Connection", b"close")] if named.scheme == "https" else []
            async with self._connected().stream(
                request.method,
                named.copy_with(host=address, fragment=None),
                headers=[(b"Host", named.netloc), *once, *_encoded(_with_cookies(request))],
                content=request.body,
                extensions={"sni_hostname": named.raw_host.decode("ascii")},
            ) as response:
                if request.cookies is not None:
                    request.cookies.take(request.url, response.headers.get_list("set-cookie"))
                location = response.headers.get("location")
                redirected = None
                if location is not None and response.status_code in _REDIRECTS:
                    redirected = _redirected(request, response.status_code, location)
                body, truncated = await _limited(response)
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            raise HostUnreachableError(
                f"cannot connect to {_where(request.url)}: {_said(error)}"
            ) from error
        except httpx2.HTTPError as error:
            raise FetchError(f"{_where(request.url)}: {_said(error)}") from error
        except httpx2.InvalidURL as error:
            raise FetchError(str(error)) from error
        answer = Fetched(
            response.status_code,
            request.url,
            response.headers.get("content-type", ""),
            body,
            response.charset_encoding,
            public,
            truncated,
            response.reason_phrase,
        )
        return answer, redirected

    def _connected(self) -> "httpx2.AsyncClient":
        if self._client is None:
            import httpx2

            self._client = httpx2.AsyncClient(
                headers={"User-Agent": "stringd"},
                verify=True if self._certificates is None else self._certificates,
                follow_redirects=False,
                timeout=httpx2.Timeout(None, connect=CONNECT_SECONDS),
                trust_env=False,
                cookies=None,
            )
        # Every request stands for itself: what one server sets, no other call sends.
        self._client.cookies.clear()
        return self._client


def fetch_in_this_thread(request: FetchRequest) -> Fetched:
    """Fetch without a running event loop, in a thread nobody waits for. Raises `FetchError`."""

    async def fetched() -> Fetched:
        fetcher = Fetcher()
        try:
            return await fetcher.fetch(request)
        finally:
            await fetcher.close()

    with asyncio.Runner(loop_factory=_ThreadLoop) as runner:
        return runner.run(fetched())


class _ThreadLoop(asyncio.SelectorEventLoop):
    """Looks names up in its own thread: a process that ends waits for those of an executor."""

    async def getaddrinfo(self, *where: Any, **how: Any) -> Any:
        return socket.getaddrinfo(*where, **how)


def normalised(url: str) -> str:
    """A URL as it will be requested: host in ASCII, `..` resolved. Raises `ValueError`."""
    import httpx2

    try:
        return str(httpx2.URL(url))
    except httpx2.InvalidURL as error:
        raise ValueError(str(error)) from error


def _host_and_port(url: str) -> tuple[str, int]:
    """Whom a URL asks. Raises `FetchError` for text that is not a web address."""
    if len(url) > MAX_URL:
        raise FetchError(f"the address is longer than {MAX_URL} characters")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise FetchError(f"not an http address: {url}") from error
    if parts.scheme not in ("http", "https") or not host:
        raise FetchError(f"not an http address: {url}")
    return host, _PORTS[parts.scheme] if port is None else port


def _where(url: str) -> str:
    host, port = _host_and_port(url)
    return str(Host(host, port))


def _said(error: Exception) -> str:
    return str(error) or type(error).__name__


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


def _with_cookies(request: FetchRequest) -> Mapping[str, str]:
    """The headers of a request; one that brings a cookie of its own gets no other."""
    sent = request.cookies.header(request.url) if request.cookies is not None else None
    if sent is None or any(name.lower() == "cookie" for name in request.headers):
        return request.headers
    return {**request.headers, "Cookie": sent}


def _redirected(request: FetchRequest, status: int, location: str) -> FetchRequest:
    """The request a redirect asks for. Another host gets no headers that may hold secrets."""
    try:
        url = urljoin(request.url, location)
        before, after = urlsplit(request.url), urlsplit(url)
    except ValueError as error:
        raise FetchError(f"redirected to {location}, which is not an address") from error
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

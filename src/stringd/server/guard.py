"""Who may talk to the daemon: only programs and pages of this machine.

The protocol answers every origin with permissive CORS headers, so without this check any web
page could drive the user's shell. Every entry, HTTP or WebSocket, asks `refusal()`.
"""

import ipaddress
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final

_AUTHORITY: Final = re.compile(
    r"(?:\[(?P<v6>[0-9A-Fa-f:.]+)\]|(?P<name>[0-9A-Za-z.-]+))(?::[0-9]{1,5})?"
)


class RequestGuard:
    """Decides by the `Host` and `Origin` headers; `allowed_origins` are compared exactly.

    Pages of this machine pass too, unless it is `strict`.
    """

    def __init__(self, allowed_origins: Iterable[str] = (), *, strict: bool = False) -> None:
        self._allowed = frozenset(allowed_origins)
        self._strict = strict
        self._decide = lru_cache(maxsize=256)(self._decide_uncached)

    def refusal(self, headers: Mapping[bytes, bytes]) -> str | None:
        """Why a request with these (lower-case) headers is refused; None when it may pass."""
        return self._decide(headers.get(b"host"), headers.get(b"origin"))

    def _decide_uncached(self, host: bytes | None, origin: bytes | None) -> str | None:
        if host is None:
            return "Forbidden: Host header required"
        name = host.decode("latin-1").strip()
        if not _is_loopback(name):
            return f"Forbidden: Host is not loopback: {name}"
        if origin is None:
            return None
        page = origin.decode("latin-1").strip()
        if page in self._allowed or (not self._strict and _is_loopback_origin(page)):
            return None
        return f"Forbidden: Origin is not allowed: {page}"


def own_pages(ports: Iterable[int]) -> list[str]:
    """The origins of pages that a daemon serves itself."""
    hosts = ("127.0.0.1", "localhost", "[::1]")
    return [f"http://{host}:{port}" for port in ports for host in hosts]


def _is_loopback_origin(origin: str) -> bool:
    scheme, separator, authority = origin.partition("://")
    return bool(separator) and scheme in ("http", "https") and _is_loopback(authority)


def _is_loopback(authority: str) -> bool:
    """Whether `host[:port]` names this machine; anything unusual does not."""
    match = _AUTHORITY.fullmatch(authority)
    if match is None:
        return False
    host = match["v6"] or match["name"].lower()
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False

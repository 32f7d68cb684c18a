"""Who may talk to the daemon: only programs and pages of this machine.

The protocol answers every origin with permissive CORS headers, so without this check any web
page could drive the user's shell. Every entry, HTTP or WebSocket, asks `refusal()`.
"""

import ipaddress
from collections.abc import Iterable
from functools import lru_cache
from urllib.parse import urlsplit


class Guard:
    """Decides by the `Host` and `Origin` headers; `allowed_origins` are compared exactly."""

    def __init__(self, allowed_origins: Iterable[str] = ()) -> None:
        self._allowed = frozenset(allowed_origins)
        self._decide = lru_cache(maxsize=256)(self._decide_uncached)

    def refusal(self, headers: Iterable[tuple[bytes, bytes]]) -> str | None:
        """Why a request with these headers is refused; None when it may pass."""
        hosts: list[bytes] = []
        origins: list[bytes] = []
        for name, value in headers:
            if name == b"host":
                hosts.append(value)
            elif name == b"origin":
                origins.append(value)
        return self._decide(tuple(hosts), tuple(origins))

    def _decide_uncached(self, hosts: tuple[bytes, ...], origins: tuple[bytes, ...]) -> str | None:
        if len(hosts) != 1 or len(origins) > 1:
            return "Forbidden: exactly one Host and at most one Origin header expected"
        host = hosts[0].decode("latin-1")
        if not _is_loopback(host):
            return f"Forbidden: Host is not loopback: {host}"
        origin = origins[0].decode("latin-1") if origins else None
        if origin is None or origin in self._allowed or _is_loopback_origin(origin):
            return None
        return f"Forbidden: Origin is not allowed: {origin}"


def _is_loopback_origin(origin: str) -> bool:
    scheme, separator, authority = origin.partition("://")
    return bool(separator) and scheme in ("http", "https") and _is_loopback(authority)


def _is_loopback(authority: str) -> bool:
    """Whether `host[:port]` names this machine; anything unusual does not."""
    if not authority or any(c in authority for c in "/\\@?# \t"):
        return False
    try:
        parts = urlsplit(f"//{authority}")
        host = parts.hostname or ""
        _ = parts.port
    except ValueError:
        return False
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False

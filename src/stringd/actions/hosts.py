"""Hosts as documents and URLs name them: which one a request asks, and which an author declared."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from stringd.documents.addresses import is_endless

_PORTS: Final = {"http": 80, "https": 443}
_DECLARED: Final = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\s:/\[\]@]+)(?::(\d{1,5}))?")


class WebOrigin(NamedTuple):
    """Scheme, host and port: what a web page may send its actions to."""

    scheme: str
    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.scheme}://{written(self.host, self.port, self.scheme)}"


class Host(NamedTuple):
    """A declared host. Without a port it means the ports of http and https."""

    name: str
    port: int | None = None

    def covers(self, asked: WebOrigin) -> bool:
        port = _PORTS[asked.scheme] if self.port is None else self.port
        if self.name.startswith("*."):
            fits = asked.host.endswith(self.name[1:]) and len(asked.host) > len(self.name) - 1
        else:
            fits = asked.host == self.name
        return fits and asked.port == port


_LONGEST_NAME: Final = 253
"""What a name of the DNS may have; encoding a longer one takes time that grows with its square."""


def origin_of(url: str) -> WebOrigin | None:
    """Whom a URL asks; None for what is not a web address."""
    if is_endless(url):
        return None
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        return None
    if parts.scheme not in _PORTS or not host:
        return None
    return WebOrigin(parts.scheme, _ascii(host), _PORTS[parts.scheme] if port is None else port)


def written(host: str, port: int, scheme: str) -> str:
    """A host as `hosts:` takes it."""
    name = f"[{host}]" if ":" in host else host
    return name if port == _PORTS.get(scheme) else f"{name}:{port}"


def declared_hosts(entries: Iterable[str], stored: Mapping[str, str]) -> tuple[Host, ...]:
    """The hosts of a `hosts:` list; `$NAME` stands for the host the user stored there."""
    return tuple(host for entry in entries for host in _hosts(entry.strip(), stored))


def _hosts(entry: str, stored: Mapping[str, str]) -> Iterator[Host]:
    if entry.startswith("$"):
        value = stored.get(entry[1:], "").strip()
        origin = origin_of(value)
        if origin is not None:
            yield Host(origin.host, origin.port)
            return
        entry = value
    match = _DECLARED.fullmatch(entry)
    if match is not None:
        yield Host(_ascii(match[1].strip("[]")), int(match[2]) if match[2] else None)


def _ascii(host: str) -> str:
    name = host.rstrip(".").lower()
    if name.isascii() or len(name) > _LONGEST_NAME:
        return name
    try:
        return name.encode("idna").decode("ascii")
    except UnicodeError:
        return name

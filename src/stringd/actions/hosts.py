"""Hosts as documents and URLs name them: which one a request asks, and which an author declared."""

from collections.abc import Iterable, Iterator, Mapping
from urllib.parse import urlsplit

from stringd.documents.addresses import is_endless
from stringd.net.hosts import PORTS, Host, WebOrigin, ascii_name, host_in


def origin_of(url: str) -> WebOrigin | None:
    """Whom a URL asks; None for what is not a web address."""
    if is_endless(url):
        return None
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        return None
    if parts.scheme not in PORTS or not host:
        return None
    return WebOrigin(parts.scheme, ascii_name(host), PORTS[parts.scheme] if port is None else port)


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
    host = host_in(entry)
    if host is not None:
        yield host

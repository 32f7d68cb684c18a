"""What a client asks of an HTTP proxy: a tunnel, or one request to pass on."""

from typing import Final, NamedTuple
from urllib.parse import urlsplit

from stringd.net.hosts import PORTS, ascii_name

# Those a proxy keeps for itself or writes again.
_OWN_HEADERS: Final = frozenset(
    (b"host", b"connection", b"keep-alive", b"proxy-connection", b"proxy-authorization")
)


class ProxyRequest(NamedTuple):
    """`opening` is what the host is sent first; empty for a tunnel."""

    host: str
    port: int
    opening: bytes


def read_request(head: bytes) -> ProxyRequest:
    """The request that lines of a head, with the empty one, make. Raises `ValueError`.

    A request that is passed on names the host itself, whatever its header said, and ends its
    connection: the next one may be for another host.
    """
    first, *headers = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
    method, target, version = first.decode("ascii").split(" ")
    if not version.startswith("HTTP/1."):
        raise ValueError(f"{version} is not spoken here")
    if method == "CONNECT":
        host, port = _address(f"//{target}")
        if port is None:
            raise ValueError("a tunnel needs a port")
        return ProxyRequest(host, port, b"")
    if not target.lower().startswith("http://"):
        raise ValueError("only http addresses and tunnels are passed on")
    host, port = _address(target)
    kept = [line for line in headers if line.partition(b":")[0].strip().lower() not in _OWN_HEADERS]
    authority, slash, path = target[len("http://") :].partition("/")
    authority, question, query = authority.partition("?")
    place = f"{slash}{path}" if slash and not question else f"/{question}{query}{slash}{path}"
    opening = [
        f"{method} {place} {version}".encode("ascii"),
        f"Host: {authority}".encode("ascii"),
        *kept,
        b"Connection: close",
    ]
    port = PORTS["http"] if port is None else port
    return ProxyRequest(host, port, b"\r\n".join(opening) + b"\r\n\r\n")


def _address(url: str) -> tuple[str, int | None]:
    parts = urlsplit(url)
    if not parts.hostname or "@" in parts.netloc:
        raise ValueError(f"{parts.netloc} is not a host")
    return ascii_name(parts.hostname), parts.port

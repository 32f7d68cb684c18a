"""Hosts as people name them in a list: which requests an entry covers."""

import ipaddress
import re
from typing import Final, NamedTuple

PORTS: Final = {"http": 80, "https": 443}
_NAMED: Final = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\s:/\[\]@]+)(?::(\d{1,5}))?")
_LONGEST_NAME: Final = 253
"""What a name of the DNS may have; encoding a longer one takes time that grows with its square."""


class WebOrigin(NamedTuple):
    """Scheme, host and port: what a web page may send its actions to."""

    scheme: str
    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.scheme}://{written(self.host, self.port, self.scheme)}"


class Host(NamedTuple):
    """A named host. Without a port it means the ports of http and https."""

    name: str
    port: int | None = None

    def covers(self, asked: WebOrigin) -> bool:
        port = PORTS[asked.scheme] if self.port is None else self.port
        if self.name.startswith("*."):
            fits = asked.host.endswith(self.name[1:]) and len(asked.host) > len(self.name) - 1
        else:
            fits = asked.host == self.name
        return fits and asked.port == port

    @property
    def names_an_address(self) -> bool:
        """Whether no look-up decides where it leads: an IP address, or this machine."""
        if self.name == "localhost":
            return True
        try:
            ipaddress.ip_address(self.name)
        except ValueError:
            return False
        return True

    def __str__(self) -> str:
        name = f"[{self.name}]" if ":" in self.name else self.name
        return name if self.port is None else f"{name}:{self.port}"


def host_in(entry: str) -> Host | None:
    """The host that an entry of a list names; None for what is not one."""
    match = _NAMED.fullmatch(entry.strip())
    if match is None:
        return None
    return Host(ascii_name(match[1].strip("[]")), int(match[2]) if match[2] else None)


def written(host: str, port: int, scheme: str) -> str:
    """A host as a list takes it."""
    return str(Host(host, None if port == PORTS.get(scheme) else port))


def ascii_name(host: str) -> str:
    """A name as the DNS has it: lower case, international ones encoded."""
    name = host.rstrip(".").lower()
    if name.isascii() or len(name) > _LONGEST_NAME:
        return name
    try:
        return name.encode("idna").decode("ascii")
    except UnicodeError:
        return name

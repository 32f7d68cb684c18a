"""Who serves the page that a request comes from, where that is a page of this machine.

Pages of this machine are local tooling, but a browser speaks for whoever wrote the page. One that
another account serves is that account's word, and one that a child of the daemon serves is the
child's: it may use topics and decides nothing, whoever opened it.
"""

import asyncio
import ipaddress
import os
import re
from typing import TYPE_CHECKING, Final

from stringd.system.lineage import Program, holds_socket, outsider_holding
from stringd.system.peers import ROOT, Peer, open_socket_table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stringd.system.lineage import Speaker

_ORIGIN: Final = re.compile(
    r"(?P<scheme>https?)://(?:\[(?P<v6>[0-9A-Fa-f:.]+)\]|(?P<name>[0-9A-Za-z.-]+))(?::(?P<port>\d{1,5}))?"
)
_PORTS: Final = {"http": 80, "https": 443}
ANOTHER_ACCOUNT: Final = "Forbidden: another account of this machine serves the page"


def refused_page(headers: "Mapping[bytes, bytes]") -> str | None:
    """Why a request is refused for the account that serves its page; None when it may pass."""
    origin = headers.get(b"origin")
    if origin is None:
        return None
    welcome = (os.geteuid(), ROOT)
    strangers = [server for server in _servers(origin) if server.uid not in welcome]
    return f"{ANOTHER_ACCOUNT} {origin.decode('latin-1')}" if strangers else None


def speaker_of(visitor: "Speaker | None", headers: "Mapping[bytes, bytes]") -> "Speaker | None":
    """Who speaks in a request: the program that sent it and, for a browser, who wrote its page."""
    origin = headers.get(b"origin")
    return visitor if visitor is None or origin is None else _PageSpeaker(visitor, origin)


class _PageSpeaker:
    """A page in a program."""

    def __init__(self, visitor: "Speaker", origin: bytes) -> None:
        self._visitor = visitor
        self._origin = origin

    async def outsider(self) -> Program | None:
        """The program that shows the page; None where something a daemon started serves it."""
        found = await self._visitor.outsider()
        # A kernel that cannot say who connects cannot say who listens either.
        if found is None or not found.pid or not _is_of_this_machine(self._origin):
            return found
        ours = await asyncio.to_thread(_is_served_outside, self._origin)
        return found if ours else None


def _is_served_outside(origin: bytes) -> bool:
    """Whether no child of a daemon serves an origin. In doubt one does."""
    servers = _servers(origin)
    return bool(servers) and all(map(_is_outside, servers))


def _is_outside(server: Peer) -> bool:
    if holds_socket(os.getpid(), server.inode):
        return True
    # Sockets of root are not shown to us, and no child of ours is root's unless we are.
    if server.uid == ROOT != os.geteuid():
        return True
    return outsider_holding(server.inode) is not None


def _servers(origin: bytes) -> list[Peer]:
    """The sockets that take connections to an origin of this machine."""
    match = _ORIGIN.fullmatch(origin.decode("latin-1").strip())
    table = open_socket_table() if match else None
    if match is None or table is None:
        return []
    port = int(match["port"] or _PORTS[match["scheme"]])
    hosts = _addresses(match["v6"] or match["name"])
    try:
        found = [table.listening((host, port)) for host in hosts] if port < 65536 else []
    finally:
        table.close()
    return [each for each in found if each is not None]


def _addresses(host: str) -> tuple[str, ...]:
    if host.lower() == "localhost":
        return "127.0.0.1", "::1"
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return ()
    return (str(address),) if address.is_loopback else ()


def _is_of_this_machine(origin: bytes) -> bool:
    match = _ORIGIN.fullmatch(origin.decode("latin-1").strip())
    return match is not None and bool(_addresses(match["v6"] or match["name"]))

"""Which network addresses are public, which are local, and which are never connected to.

Every part of the daemon asks here before it connects, so an address means the same everywhere,
however it is written: as one number, in octal, or inside one of the IPv6 forms that carry IPv4.
"""

import asyncio
import ipaddress
import socket
from collections.abc import Callable, Iterator, Sequence
from typing import Final, Literal, NamedTuple

Reach = Literal["public", "private", "loopback", "metadata", "daemon"]
"""`loopback` is this machine, `private` another one near it.

A `metadata` service hands out a cloud machine's credentials to whoever asks from it; at a port of
the `daemon` itself whoever asks could give it commands. Nothing is sent to either.
"""

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_WORST_LAST: Final[tuple[Reach, ...]] = ("public", "private", "loopback", "metadata")
_own_ports: Final = set[int]()

_METADATA: Final = frozenset(
    ipaddress.ip_address(each)
    for each in (
        "169.254.169.254",
        "169.254.170.2",
        "169.254.170.23",
        "169.254.0.23",
        "168.63.129.16",
        "192.0.0.192",
        "100.100.100.200",
        "fd00:ec2::254",
        "fd00:ec2::23",
        "fd20:ce::254",
    )
)
_METADATA_NAMES: Final = frozenset(
    ("metadata.google.internal", "metadata.goog", "metadata", "instance-data")
)
# IPv6 addresses that are an IPv4 one, in their last four bytes: mapped, compatible, translated,
# and NAT64 by the well-known prefix.
_CARRIERS: Final = tuple(
    ipaddress.IPv6Network(each)
    for each in ("::ffff:0:0/96", "::/96", "::ffff:0:0:0/96", "64:ff9b::/96")
)
# A network's own NAT64 (RFC 8215) may put the IPv4 address where any prefix length ends.
_LOCAL_NAT64: Final = ipaddress.IPv6Network("64:ff9b:1::/48")
_GLOBAL_UNICAST: Final = ipaddress.IPv6Network("2000::/3")
_DOCUMENTATION: Final = ipaddress.IPv6Network("3fff::/20")
_ISATAP: Final = (0x00005EFE, 0x02005EFE)


class Resolved(NamedTuple):
    """The addresses of a host, in the order to try them, and how far the nearest one reaches."""

    addresses: Sequence[str]
    reach: Reach


def classify(address: str) -> Reach:
    """How far an IP address reaches. Raises `ValueError` for text that is not one.

    Only the forms that `ipaddress` reads are accepted; `resolve` reads the others, such as
    `127.1`, as the system does.
    """
    return _worst(map(_reach, _meanings(ipaddress.ip_address(address.partition("%")[0]))))


async def resolve(host: str, port: int, judge: Callable[[str], Reach] = classify) -> Resolved:
    """The addresses of a host, once and for all. Raises `OSError` or `UnicodeError`.

    `port` is the one that will be connected to, the scheme's own where a URL names none. One
    private address among public ones is how a name is rebound, so the worst one counts.
    """
    loop = asyncio.get_running_loop()
    if host.rstrip(".").lower() in _METADATA_NAMES:
        return Resolved((), "metadata")
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    addresses = tuple(dict.fromkeys(str(each[4][0]) for each in found))
    if not addresses:
        raise OSError("no address")
    if port in _own_ports and any(classify(each) == "loopback" for each in addresses):
        return Resolved((), "daemon")
    return Resolved(addresses, _worst(map(judge, addresses)))


def claim_port(port: int) -> None:
    """Say that this process listens on a loopback port: `resolve` leads nobody there."""
    _own_ports.add(port)


def _worst(reaches: Iterator[Reach]) -> Reach:
    return max(reaches, key=_WORST_LAST.index)


def _reach(address: _Address) -> Reach:
    if address in _METADATA:
        return "metadata"
    # The system takes the unspecified address for this machine.
    if address.is_loopback or address.is_unspecified:
        return "loopback"
    if isinstance(address, ipaddress.IPv6Address) and (
        address not in _GLOBAL_UNICAST or address in _DOCUMENTATION
    ):
        return "private"
    return "public" if address.is_global and not address.is_multicast else "private"


def _meanings(address: _Address) -> Iterator[_Address]:
    """Every address that a packet to this one may end at."""
    if isinstance(address, ipaddress.IPv4Address) or int(address) <= 1:
        yield address
        return
    number = int(address)
    if any(address in network for network in _CARRIERS):
        yield ipaddress.IPv4Address(number & 0xFFFFFFFF)
        return
    if address.sixtofour is not None:
        yield address.sixtofour
    else:
        yield address
    if address.teredo is not None:
        yield from address.teredo
    if address in _LOCAL_NAT64:
        yield from _nat64_candidates(number)
    if (number >> 32) & 0xFFFFFFFF in _ISATAP:
        yield ipaddress.IPv4Address(number & 0xFFFFFFFF)


def _nat64_candidates(number: int) -> Iterator[ipaddress.IPv4Address]:
    """The IPv4 addresses of RFC 6052, for prefixes of 48, 56, 64 and 96 bits; bits 64-71 are 0."""
    without_gap = (number >> 64 << 56) | (number & ((1 << 56) - 1))
    places = [(without_gap >> (120 - prefix - 32)) & 0xFFFFFFFF for prefix in (48, 56, 64)]
    # An empty place is padding of another form, not the unspecified address.
    yield from map(ipaddress.IPv4Address, filter(None, (*places, number & 0xFFFFFFFF)))

"""Which network addresses are public, which need the human's yes, and which are never fetched."""

import asyncio
import ipaddress
import socket
from typing import Final, Literal, NamedTuple

from stringd.runs.guard.errors import Denied

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

# Cloud metadata services hand out credentials to whoever asks from this machine.
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
# IPv6 addresses that carry an IPv4 one in their last four bytes: compatible, translated, NAT64.
_CARRIERS: Final = tuple(
    ipaddress.IPv6Network(each) for each in ("::/96", "::ffff:0:0:0/96", "64:ff9b::/96")
)
_LOCAL_NAT64: Final = ipaddress.IPv6Network("64:ff9b:1::/48")


class Resolved(NamedTuple):
    """An address to connect to. `reach` is `private` for loopback and local networks."""

    address: str
    reach: Literal["public", "private"]


async def resolve(host: str, port: int) -> Resolved:
    """The address of a host, once and for all. Raises `Denied` or `OSError`."""
    if host.rstrip(".").lower() in _METADATA_NAMES:
        raise _refused(host)
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    addresses = [ipaddress.ip_address(str(each[4][0]).partition("%")[0]) for each in found]
    if not addresses:
        raise OSError("no address")
    plain = [_unwrapped(address) for address in addresses]
    if any(address in _METADATA for address in plain):
        raise _refused(host)
    # One private answer among public ones is how a name is rebound; the worst one counts.
    private = any(not _is_public(address) for address in plain)
    return Resolved(str(addresses[0]), "private" if private else "public")


def _is_public(address: Address) -> bool:
    if isinstance(address, ipaddress.IPv6Address) and (
        address.is_site_local or address in _LOCAL_NAT64
    ):
        return False
    return address.is_global and not address.is_multicast


def _unwrapped(address: Address) -> Address:
    """The IPv4 address inside a mapped or translated IPv6 one."""
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour
        if inner is not None:
            return inner
        if int(address) > 1 and any(address in network for network in _CARRIERS):
            return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address


def _refused(host: str) -> Denied:
    return Denied(f"{host} is a cloud metadata service; it is never fetched")

"""Which account is at the other end of a TCP connection, or listens on a port: the kernel's word.

Linux answers this through `sock_diag`: one exact question by address and port, one answer, a few
microseconds. The answer is the account that opened the socket, whoever holds it now.

Imports next to nothing: `string` asks before it sends anything, and must start fast.
"""

try:
    import _socket as socket
except ImportError:
    import socket  # type: ignore[no-redef]

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    Address = tuple[str, int]
    """A numeric host and a port: the first two items of what `getpeername()` returns."""

ROOT: "Final" = 0

_NETLINK_SOCK_DIAG = 4
_SOCK_DIAG_BY_FAMILY = 20
_NLM_F_REQUEST = 1
_ANY_STATE = 0xFFFFFFFF
_ESTABLISHED_TO_CLOSING = frozenset({1, 4, 5, 8, 9, 11})
"""ESTABLISHED, FIN_WAIT1, FIN_WAIT2, CLOSE_WAIT, LAST_ACK, CLOSING: what has two ends."""
_LISTEN = 10
_UDIAG_SHOW_PEER = 4
_UNIX_DIAG_PEER = 2
_MAPPED = bytes(10) + b"\xff\xff"
"""In front of an IPv4 address that an IPv6 socket uses."""


def _native(number: int, size: int) -> bytes:
    return number.to_bytes(size, sys.byteorder)


_KIND = _native(_SOCK_DIAG_BY_FAMILY, 2)
_NO_COOKIE = b"\xff" * 8
_ANY_INTERFACE = bytes(4)


def _head(size: int, family: int, protocol: int) -> bytes:
    """How a question of this size begins. One at a time needs no numbers to tell them apart."""
    netlink = _native(size, 4) + _KIND + _native(_NLM_F_REQUEST, 2) + bytes(8)
    return netlink + bytes((family, protocol, 0, 0)) + _native(_ANY_STATE, 4)


_V4_HEAD = _head(72, socket.AF_INET, socket.IPPROTO_TCP)
_V6_HEAD = _head(72, socket.AF_INET6, socket.IPPROTO_TCP)
_UNIX_HEAD = _head(40, socket.AF_UNIX, 0)


class Peer:
    """A socket: the account that opened it, and the number under which /proc lists it."""

    __slots__ = ("inode", "uid")

    def __init__(self, uid: int, inode: int) -> None:
        self.uid = uid
        self.inode = inode

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Peer) and (self.uid, self.inode) == (other.uid, other.inode)

    def __hash__(self) -> int:
        return hash((self.uid, self.inode))

    def __repr__(self) -> str:
        return f"Peer(uid={self.uid}, inode={self.inode})"


class SocketTable:
    """Asks the kernel about TCP sockets of this machine, over one socket it keeps."""

    def __init__(self, kernel: "socket.socket") -> None:
        self._kernel = kernel

    def close(self) -> None:
        self._kernel.close()

    def connected(self, own: "Address", other: "Address") -> Peer | None:
        """The socket whose own address is `own` and that is connected to `other`.

        None when there is none, or when it was closed already: the kernel then no longer knows
        whose it was, and says 0. To learn who connected, pass `(getpeername(), getsockname())`.
        """
        family, near, far = _family(own[0], other[0])
        ports = own[1].to_bytes(2, "big") + other[1].to_bytes(2, "big")
        answer = self._ask(family, ports, near, far)
        if answer is None or answer[17] not in _ESTABLISHED_TO_CLOSING:
            return None
        # The kernel looks for a listener of that port when there is no such connection.
        if answer[20:24] != ports or not (_is(answer[24:40], near) and _is(answer[40:56], far)):
            return None
        return _peer(answer)

    def listening(self, address: "Address") -> Peer | None:
        """The socket that takes connections to this address, also one bound to all addresses."""
        family, near, far = _family(address[0], address[0])
        port = address[1].to_bytes(2, "big")
        answer = self._ask(family, port + bytes(2), near, far)
        if answer is None or answer[17] != _LISTEN or answer[20:22] != port:
            return None
        return _peer(answer)

    def unix_other_end(self, inode: int) -> int | None:
        """The number of the socket at the other end of a Unix connection, by that of our end.

        None when it was closed, or when this kernel cannot say.
        """
        shown = _native(inode, 4) + _native(_UDIAG_SHOW_PEER, 4)
        answer = self._exchange(_UNIX_HEAD + shown + _NO_COOKIE, 40)
        if answer is None or answer[34:36] != _native(_UNIX_DIAG_PEER, 2):
            return None
        return int.from_bytes(answer[36:40], sys.byteorder) or None

    def _ask(self, family: int, ports: bytes, near: bytes, far: bytes) -> bytes | None:
        addresses = ports + near.ljust(16, b"\0") + far.ljust(16, b"\0")
        head = _V4_HEAD if family == socket.AF_INET else _V6_HEAD
        return self._exchange(head + addresses + _ANY_INTERFACE + _NO_COOKIE, 88)

    def _exchange(self, question: bytes, size: int) -> bytes | None:
        """One question, and its answer when it has at least this size and is not an error."""
        try:
            self._kernel.send(question)
            answer = self._kernel.recv(1024)
        except OSError:
            return None
        return answer if len(answer) >= size and answer[4:6] == _KIND else None


def open_socket_table() -> SocketTable | None:
    """A table to ask; None when this kernel cannot say whose a socket is."""
    try:
        kind = socket.SOCK_RAW | socket.SOCK_CLOEXEC
        kernel = socket.socket(socket.AF_NETLINK, kind, _NETLINK_SOCK_DIAG)
    except (OSError, AttributeError):
        return None
    # The kernel answers before `send` returns; if it did not, waiting would not help.
    kernel.setblocking(False)
    return SocketTable(kernel)


def kernel_can_say() -> bool:
    """Whether this kernel knows a socket that we have just opened ourselves."""
    table = open_socket_table()
    if table is None:
        return False
    probe = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        probe.bind(("127.0.0.1", 0))
        probe.listen(1)
        found = table.listening(probe.getsockname())
        return found is not None and found.inode == os.fstat(probe.fileno()).st_ino
    except OSError:
        return False
    finally:
        probe.close()
        table.close()


def stranger_serving(server: "Address", own: "Address") -> int | None:
    """The account that serves a connection we made, when it is neither ours nor root.

    `server` and `own` are the connection's `getpeername()` and `getsockname()`. Ask before the
    first byte is sent. None also means that the kernel cannot say.
    """
    table = open_socket_table()
    if table is None:
        return None
    try:
        # In this order: a listener that changed hands in between has accepted us before.
        listener = table.listening(server)
        accepted = table.connected(server, own)
    finally:
        table.close()
    found = accepted or listener
    return None if found is None or found.uid in (os.geteuid(), ROOT) else found.uid


def unix_peer(connection: "socket.socket") -> tuple[int, int]:
    """The process and the account that opened the other end of a Unix socket."""
    answer = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    pid, uid = (int.from_bytes(answer[at : at + 4], sys.byteorder) for at in (0, 4))
    return pid, uid


def _family(host: str, other: str) -> tuple[int, bytes, bytes]:
    """Two numeric addresses as the kernel takes them; IPv4 in IPv6 clothes is IPv4."""
    if ":" not in host:
        return socket.AF_INET, socket.inet_aton(host), socket.inet_aton(other)
    near, far = (_packed(each) for each in (host, other))
    if near.startswith(_MAPPED) and far.startswith(_MAPPED):
        return socket.AF_INET, near[12:], far[12:]
    return socket.AF_INET6, near, far


def _packed(host: str) -> bytes:
    return socket.inet_pton(socket.AF_INET6, host.partition("%")[0])


def _is(answered: bytes, asked: bytes) -> bool:
    """Whether the kernel answered about this address, in either way to write an IPv4 address."""
    return answered == asked.ljust(16, b"\0") or answered == _MAPPED + asked


def _peer(answer: bytes) -> Peer | None:
    inode = int.from_bytes(answer[84:88], sys.byteorder)
    return Peer(int.from_bytes(answer[80:84], sys.byteorder), inode) if inode else None

"""The kernel's word on who is at the other end of a socket."""

import os
import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from stringd.system.peers import (
    Peer,
    SocketTable,
    kernel_can_say,
    open_socket_table,
    stranger_serving,
    unix_peer,
)
from tests.support.accounts import STRANGER, as_stranger, needs_root
from tests.support.daemon import WAIT_SECONDS

pytestmark = pytest.mark.skipif(not kernel_can_say(), reason="this kernel has no sock_diag")

CONNECT_AND_WAIT = """\
connection = socket.socket(int(sys.argv[2]), socket.SOCK_STREAM, int(sys.argv[4]))
connection.connect((sys.argv[1], int(sys.argv[3])))
print("connected", flush=True)
sys.stdin.read()
"""
LISTEN_AND_WAIT = """\
listener = socket.socket(int(sys.argv[2]))
listener.bind((sys.argv[1], 0))
listener.listen()
print(listener.getsockname()[1], flush=True)
sys.stdin.read()
"""


@pytest.fixture
def table() -> Iterator[SocketTable]:
    found = open_socket_table()
    assert found is not None
    with closing(found):
        yield found


def listen(host: str = "127.0.0.1") -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family)
    listener.settimeout(WAIT_SECONDS)
    listener.bind((host, 0))
    listener.listen()
    return listener


def connect(listener: socket.socket, host: str | None = None) -> socket.socket:
    own, port = listener.getsockname()[:2]
    client = socket.socket(socket.AF_INET6 if ":" in (host or own) else socket.AF_INET)
    client.connect((host or own, port))
    return client


def who_connected(table: SocketTable, accepted: socket.socket) -> Peer | None:
    return table.connected(accepted.getpeername()[:2], accepted.getsockname()[:2])


def own(held: socket.socket) -> Peer:
    return Peer(os.geteuid(), os.fstat(held.fileno()).st_ino)


@pytest.mark.parametrize(
    ("listening", "connecting"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("::1", "::1"),
        ("127.0.0.1", "::ffff:127.0.0.1"),
        ("::", "127.0.0.1"),
        ("::", "::1"),
        ("0.0.0.0", "127.0.0.1"),
    ],
)
def test_a_connection_is_known_by_its_account_and_inode(
    table: SocketTable, listening: str, connecting: str
) -> None:
    with listen(listening) as listener, connect(listener, connecting) as client:
        accepted, _ = listener.accept()
        with accepted:
            assert who_connected(table, accepted) == own(client)


@needs_root
@pytest.mark.parametrize(("host", "family"), [("127.0.0.1", 2), ("::ffff:127.0.0.1", 10)])
@pytest.mark.parametrize("protocol", [0, 262], ids=["tcp", "mptcp"])
def test_another_account_is_named(
    table: SocketTable, host: str, family: int, protocol: int
) -> None:
    with listen() as listener:
        port = listener.getsockname()[1]
        with as_stranger(CONNECT_AND_WAIT, host, family, port, protocol) as other:
            assert other.stdout is not None
            if not other.stdout.readline():
                pytest.skip("this kernel has no such protocol")
            accepted, _ = listener.accept()
            with accepted:
                found = who_connected(table, accepted)
            assert found is not None
            assert found.uid == STRANGER
            assert other.stdin is not None
            other.stdin.close()


def test_a_socket_that_only_stopped_sending_is_still_known(table: SocketTable) -> None:
    with listen() as listener, connect(listener) as client:
        accepted, _ = listener.accept()
        with accepted:
            client.shutdown(socket.SHUT_WR)
            assert accepted.recv(1) == b""
            assert who_connected(table, accepted) == own(client)


def test_a_socket_closed_already_is_not_taken_for_one_of_root(table: SocketTable) -> None:
    with listen() as listener:
        client = connect(listener)
        accepted, _ = listener.accept()
        with accepted:
            client.close()
            assert accepted.recv(1) == b""
            assert who_connected(table, accepted) is None


def test_a_listener_on_the_port_a_client_had_is_not_taken_for_the_client(
    table: SocketTable,
) -> None:
    with listen() as listener:
        client = socket.socket()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        client.bind(("127.0.0.1", 0))
        address = client.getsockname()
        client.connect(listener.getsockname())
        accepted, _ = listener.accept()
        with accepted, socket.socket() as later:
            peer = accepted.getpeername()
            # An abrupt end leaves nothing that would keep the port.
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
            client.close()
            later.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            later.bind(address)
            later.listen()
            assert table.listening(address) == own(later)
            assert table.connected(peer, listener.getsockname()) is None


def test_a_connection_that_never_was_is_unknown(table: SocketTable) -> None:
    with listen() as listener:
        address = listener.getsockname()
        assert table.connected(("127.0.0.1", 1), address) is None


def test_a_handed_over_connection_belongs_to_who_opened_it(table: SocketTable) -> None:
    ours, theirs = socket.socketpair()
    with listen() as listener, ours, theirs:
        client = connect(listener)
        expected = own(client)
        socket.send_fds(ours, [b"x"], [client.fileno()])
        client.close()
        _, (received,), _, _ = socket.recv_fds(theirs, 1, 1)
        accepted, _ = listener.accept()
        with accepted:
            assert who_connected(table, accepted) == expected
        os.close(received)


@pytest.mark.parametrize(
    ("host", "asked"),
    [("127.0.0.1", "127.0.0.1"), ("0.0.0.0", "127.0.0.1"), ("::", "127.0.0.1"), ("::1", "::1")],
)
def test_the_listener_of_an_address_is_found_whatever_it_is_bound_to(
    table: SocketTable, host: str, asked: str
) -> None:
    with listen(host) as listener:
        assert table.listening((asked, listener.getsockname()[1])) == own(listener)


def test_a_port_nobody_listens_on_has_no_listener(table: SocketTable) -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        assert table.listening(bound.getsockname()) is None


@pytest.mark.parametrize("taken", [False, True])
def test_a_listener_of_our_own_account_is_not_a_stranger(taken: bool) -> None:
    with listen() as listener, connect(listener) as client:
        accepted = listener.accept()[0] if taken else None
        assert stranger_serving(listener.getsockname(), client.getsockname()) is None
        if accepted is not None:
            accepted.close()


@needs_root
@pytest.mark.parametrize(("host", "family"), [("127.0.0.1", 2), ("0.0.0.0", 2), ("::", 10)])
def test_a_listener_of_another_account_is_a_stranger(host: str, family: int) -> None:
    with as_stranger(LISTEN_AND_WAIT, host, family) as other:
        assert other.stdout is not None
        port = int(other.stdout.readline())
        with socket.create_connection(("127.0.0.1", port)) as client:
            assert stranger_serving(client.getpeername(), client.getsockname()) == STRANGER
        assert other.stdin is not None
        other.stdin.close()


def test_the_other_end_of_a_unix_socket_is_known(table: SocketTable, tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as client:
        listener.bind(str(tmp_path / "s"))
        listener.listen()
        client.connect(str(tmp_path / "s"))
        accepted, _ = listener.accept()
        with accepted:
            inode = os.fstat(accepted.fileno()).st_ino
            assert unix_peer(accepted) == (os.getpid(), os.geteuid())
            assert table.unix_other_end(inode) == os.fstat(client.fileno()).st_ino
            client.close()
            assert table.unix_other_end(inode) is None

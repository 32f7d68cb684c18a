"""Our small HTTP client against the daemon, and against peers that misbehave."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from stringd.client.http import DaemonConnection, StringClientError, TransportError
from tests.requirements import proves
from tests.support.daemon import WAIT_SECONDS, Daemon, free_port


@contextmanager
def peer(*answers: bytes) -> Iterator[tuple[int, list[bytes]]]:
    """A server that takes one connection an answer, reads once, sends it and closes."""
    heard: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(WAIT_SECONDS)

        def serve() -> None:
            for answer in answers:
                connection, _ = listener.accept()
                with connection:
                    heard.append(connection.recv(65536))
                    connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        yield listener.getsockname()[1], heard
        thread.join(WAIT_SECONDS)


@proves("CLIENT-09")
def test_one_connection_serves_many_requests(daemon: Daemon) -> None:
    connection = DaemonConnection(daemon.port)
    for _ in range(3):
        assert connection.request("GET", "/health").status == 200
    assert connection.request("OPTIONS", "/health").body == b""
    assert connection.request("GET", "/nothing").status == 404
    connection.close()


@proves("CLIENT-09")
def test_a_connection_closed_while_idle_is_opened_again(daemon: Daemon) -> None:
    connection = DaemonConnection(daemon.port)
    assert connection.request("GET", "/users", headers={"Connection": "close"}).closes is True
    assert connection.request("GET", "/users").status == 200
    connection.close()


@proves("CLIENT-06")
def test_a_request_is_never_sent_twice() -> None:
    with peer(b"") as (port, heard):
        connection = DaemonConnection(port)
        with pytest.raises(TransportError, match="closed the connection"):
            connection.request("POST", "/exec", b"{}")
    assert len(heard) == 1


def test_a_body_of_any_framing_is_read() -> None:
    answers = [
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;x\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n",
        b"HTTP/1.0 200 OK\r\n\r\nhello",
    ]
    with peer(*answers) as (port, _):
        for _ in answers:
            with DaemonConnection(port) as connection:
                assert connection.request("GET", "/").body == b"hello"


@pytest.mark.parametrize(
    "answer",
    [
        b"SSH-2.0-OpenSSH\r\n\r\n",
        b"HTTP/1.1 abc\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Le",
        b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    ],
)
def test_what_is_no_answer_is_a_transport_error(answer: bytes) -> None:
    with peer(answer) as (port, _), pytest.raises(TransportError):
        DaemonConnection(port, timeout=WAIT_SECONDS).request("GET", "/")


def test_a_chunked_body_that_breaks_off_is_what_arrived() -> None:
    answer = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n9\r\nllo"
    with peer(answer) as (port, _), DaemonConnection(port) as connection:
        assert connection.request("GET", "/").body == b"he"


def test_nobody_there_is_said() -> None:
    port = free_port()
    said = f"^cannot reach stringd on port {port}: Connection refused$"
    with pytest.raises(TransportError, match=said):
        DaemonConnection(port).request("GET", "/health")


def test_24_a_time_out_is_not_called_unreachable_and_is_a_client_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        with (
            DaemonConnection(port, timeout=0.1) as connection,
            pytest.raises(StringClientError, match="did not answer within 0"),
        ):
            connection.request("GET", "/health")

"""Only the daemon's own account may talk to it: the kernel says who connects."""

import json
import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from stringd.system.peers import kernel_can_say
from tests.requirements import proves
from tests.support.accounts import STRANGER, as_stranger, needs_root
from tests.support.daemon import WAIT_SECONDS, Daemon, free_port
from tests.support.http import User, Wire, message, request

pytestmark = pytest.mark.skipif(not kernel_can_say(), reason="this kernel has no sock_diag")

SEND_AND_READ = """\
connection = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
connection.sendall(bytes.fromhex(sys.argv[2]))
received = b""
while chunk := connection.recv(65536):
    received += chunk
sys.stdout.write(received.decode("latin-1"))
"""
SEND_AND_LEAVE = """\
connection = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
connection.sendall(bytes.fromhex(sys.argv[2]))
connection.close()
print("gone", flush=True)
"""
PASS_ON = """\
connection = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
socket.send_fds(socket.socket(fileno=int(sys.argv[2])), [b"x"], [connection.fileno()])
"""
UPGRADE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
}


@pytest.fixture(scope="module")
def logged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Daemon, int]]:
    """A daemon that keeps a log, and the port of its runs."""
    runs_port = free_port()
    directory = tmp_path_factory.mktemp("logged")
    with Daemon(directory, "--runs-port", str(runs_port), "--log") as running:
        yield running, runs_port


def stranger_asks(port: int, data: bytes) -> tuple[int, str]:
    """Status and error that another account is answered."""
    with as_stranger(SEND_AND_READ, port, data.hex()) as other:
        answer, _ = other.communicate(timeout=WAIT_SECONDS)
    # Reading as text has made every line end the same.
    head, _, body = answer.partition("\n\n")
    return int(head.split()[1]), json.loads(body)["error"]


@needs_root
@proves("TRUST-10")
@pytest.mark.parametrize(
    ("method", "path", "headers"),
    [
        ("GET", "/health", {}),
        ("OPTIONS", "/exec", {}),
        ("GET", "/users", {}),
        ("POST", "/exec", {"X-User-Id": "default"}),
        ("POST", "/chanflow", {"X-User-Id": "default"}),
        ("POST", "/mcp", {}),
        ("POST", "/shutdown", {}),
        ("GET", "/nothing", {}),
        ("GET", "/ws", UPGRADE),
    ],
)
def test_another_account_is_refused_on_every_path(
    logged: tuple[Daemon, int], method: str, path: str, headers: dict[str, str]
) -> None:
    body = b'{"cmd":"/info"}' if method == "POST" else None
    for port in (logged[0].port, logged[1]):
        status, error = stranger_asks(port, message(method, path, body, headers))
        assert status == 403
        assert error.startswith("Forbidden: this daemon belongs to another account")


@needs_root
@proves("TRUST-10")
@pytest.mark.parametrize("data", [b"nonsense\r\n\r\n", b"\x16\x03\x01", b"GET / HTTP/1.1\r\n"])
def test_another_account_is_refused_before_it_is_understood(
    logged: tuple[Daemon, int], data: bytes
) -> None:
    assert stranger_asks(logged[0].port, data)[0] == 403


@needs_root
@proves("TRUST-10")
def test_a_refused_account_is_in_the_log(logged: tuple[Daemon, int]) -> None:
    daemon, _ = logged
    stranger_asks(daemon.port, message("GET", "/health"))
    log = (daemon.data_dir / "logs" / "stringd.log").read_text("utf-8")
    assert f"peer.refused uid={STRANGER}\n" in log


@needs_root
@proves("TRUST-10")
def test_who_has_left_before_being_looked_at_runs_nothing(daemon: Daemon, tmp_path: Path) -> None:
    """The kernel says 0 about a socket that was closed, and 0 is also root."""
    user = User(daemon.port, "leaver", tmp_path)
    canary = tmp_path / "canary"
    assert daemon.process is not None
    daemon.process.send_signal(signal.SIGSTOP)
    try:
        data = user.message(f"/exec touch {canary}").hex()
        with as_stranger(SEND_AND_LEAVE, daemon.port, data) as other:
            assert other.stdout is not None
            assert other.stdout.readline() == "gone\n"
    finally:
        daemon.process.send_signal(signal.SIGCONT)
    # Connections are accepted in order: when this one is answered, that one was looked at.
    assert request(daemon.port, "GET", "/health").status == 200
    head, _ = user.exec("/exec true")
    assert head["ok"]
    assert not canary.exists()


@needs_root
@proves("TRUST-10")
def test_a_connection_belongs_to_the_account_that_opened_it(daemon: Daemon) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        os.set_inheritable(theirs.fileno(), True)
        with as_stranger(PASS_ON, daemon.port, theirs.fileno(), keep=theirs.fileno()) as other:
            _, (received,), _, _ = socket.recv_fds(ours, 1, 1)
            other.communicate(timeout=WAIT_SECONDS)
    with socket.socket(fileno=received) as connection:
        connection.sendall(message("GET", "/health"))
        assert connection.recv(65536).startswith(b"HTTP/1.1 403 ")


@proves("TRUST-10")
def test_our_own_account_may_stop_sending_before_it_is_answered(daemon: Daemon) -> None:
    with Wire(daemon.port) as wire:
        wire.send(message("GET", "/health", headers={"Connection": "close"})).end()
        assert wire.receive().status == 200


@needs_root
@proves("TRUST-10")
def test_a_silent_stranger_keeps_nobody_from_the_daemon(daemon: Daemon) -> None:
    code = (
        'c = socket.create_connection(("127.0.0.1", int(sys.argv[1])))\nprint(flush=True)\ninput()'
    )
    with as_stranger(code, daemon.port) as other:
        assert other.stdout is not None
        other.stdout.readline()
        assert request(daemon.port, "GET", "/health").status == 200
        other.communicate("\n", timeout=WAIT_SECONDS)

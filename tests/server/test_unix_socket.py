"""The Unix socket beside the port: private, peers checked, never taken from a live daemon."""

import http.client
import json
import os
import socket
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from websockets.sync.client import unix_connect

from stringd.server.settings import load_settings
from stringd.server.unix_socket import SocketRefusedError, UnixSocket
from tests.requirements import proves
from tests.support.accounts import as_stranger, needs_root
from tests.support.daemon import WAIT_SECONDS, Daemon
from tests.support.http import message

STRANGER_ASKS = """\
connection = socket.socket(socket.AF_UNIX)
try:
    connection.connect(sys.argv[1])
except OSError as error:
    print(type(error).__name__)
else:
    connection.sendall(bytes.fromhex(sys.argv[2]))
    print(connection.recv(65536).decode())
"""


class UnixHTTP(http.client.HTTPConnection):
    """`http.client` on a Unix socket."""

    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=WAIT_SECONDS)
        self.path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(WAIT_SECONDS)
        self.sock.connect(str(self.path))


def ask(path: Path, method: str, target: str, **headers: str) -> tuple[int, dict[str, object]]:
    connection = UnixHTTP(path)
    connection.request(method, target, headers=headers)
    answer = connection.getresponse()
    try:
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


@pytest.fixture
def socket_path(daemon: Daemon) -> Path:
    return daemon.data_dir / "stringd.sock"


@pytest.fixture
def held(tmp_path: Path) -> Iterator[UnixSocket]:
    listening = UnixSocket(tmp_path / "private" / "s.sock")
    yield listening
    listening.close()


@proves("TRUST-11")
def test_it_is_the_owners_alone(socket_path: Path) -> None:
    found = socket_path.stat()
    assert stat.S_ISSOCK(found.st_mode)
    assert stat.S_IMODE(found.st_mode) == 0o600
    assert stat.S_IMODE(socket_path.parent.stat().st_mode) == 0o700


@proves("TRUST-11")
def test_it_speaks_http(daemon: Daemon, socket_path: Path) -> None:
    status, health = ask(socket_path, "GET", "/health")
    assert (status, health["ok"]) == (200, True)
    assert ask(socket_path, "GET", "/nothing")[0] == 404
    assert ask(socket_path, "GET", "/users", Origin="https://evil.example")[0] == 403


@proves("TRUST-11")
def test_it_speaks_the_runs_protocol(socket_path: Path) -> None:
    with unix_connect(str(socket_path), "ws://localhost/ws") as connection:
        connection.send('{"type":"ping","requestId":"1"}')
        assert json.loads(connection.recv(WAIT_SECONDS))["type"] == "pong"


@needs_root
@proves("TRUST-10", "TRUST-11")
def test_another_account_cannot_open_it(socket_path: Path) -> None:
    with as_stranger(STRANGER_ASKS, socket_path, message("GET", "/health").hex()) as other:
        answer, _ = other.communicate(timeout=WAIT_SECONDS)
    assert answer == "PermissionError\n"


@needs_root
@proves("TRUST-10", "TRUST-11")
def test_another_account_that_reaches_it_is_refused(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    with Daemon(tmp_path_factory.mktemp("open")) as daemon:
        path = daemon.data_dir / "stringd.sock"
        path.chmod(0o666)
        for directory in (daemon.data_dir, *daemon.data_dir.parents[:-1]):
            if directory.stat().st_uid == os.geteuid() and directory != Path("/tmp"):
                directory.chmod(directory.stat().st_mode | 0o711)
        with as_stranger(STRANGER_ASKS, path, message("GET", "/health").hex()) as other:
            answer, _ = other.communicate(timeout=WAIT_SECONDS)
    assert answer.startswith("HTTP/1.1 403 ")


@proves("TRUST-11")
def test_it_goes_with_the_daemon_and_a_stale_one_is_replaced(tmp_path: Path) -> None:
    daemon = Daemon(tmp_path)
    path = daemon.data_dir / "stringd.sock"
    with daemon:
        assert path.is_socket()
    assert not path.exists()
    daemon.start()
    daemon.kill()
    assert path.is_socket()
    with daemon:
        assert ask(path, "GET", "/health")[0] == 200


@proves("TRUST-11")
def test_a_second_daemon_does_not_take_it(tmp_path: Path) -> None:
    with Daemon(tmp_path) as first:
        path = first.data_dir / "stringd.sock"
        second = Daemon(tmp_path / "second", STRINGD_SOCKET=str(path))
        with second:
            assert first.process is not None
            held = f"another daemon has it (process {first.process.pid})"
            assert f"no Unix socket at {path}: {held}" in "".join(second.output)
        assert ask(path, "GET", "/health")[0] == 200


def test_a_file_in_its_place_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "s.sock"
    path.write_text("mine", "utf-8")
    with pytest.raises(SocketRefusedError, match="another file is there"):
        UnixSocket(path)
    assert path.read_text("utf-8") == "mine"
    assert list(tmp_path.iterdir()) == [path]


def test_a_path_that_is_too_long_is_refused_with_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(SocketRefusedError, match="STRINGD_SOCKET chooses another path"):
        UnixSocket(tmp_path / ("x" * 100) / "s.sock")


def test_closing_leaves_the_socket_of_a_successor(held: UnixSocket) -> None:
    held.listener.close()
    successor = UnixSocket(held.path)
    held.close()
    assert held.path.is_socket()
    successor.close()
    assert not held.path.exists()


def test_the_directory_it_makes_is_private(held: UnixSocket) -> None:
    assert stat.S_IMODE(held.path.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(held.path.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, "~/.string/stringd.sock"),
        ({"STRINGD_DATA_DIR": "~/.string/daemon"}, "~/.string/stringd.sock"),
        ({"STRINGD_DATA_DIR": "/srv/data"}, "/srv/data/stringd.sock"),
        ({"STRINGD_SOCKET": "~/mine.sock", "STRINGD_DATA_DIR": "/srv"}, "~/mine.sock"),
        ({"STRINGD_SOCKET": "off"}, None),
    ],
)
def test_where_it_is(settings: dict[str, str], expected: str | None) -> None:
    environ = {
        k: v if k == "STRINGD_SOCKET" else str(Path(v).expanduser()) for k, v in settings.items()
    }
    wanted = None if expected is None else Path(expected).expanduser()
    assert load_settings(environ).socket == wanted

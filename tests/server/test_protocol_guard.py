"""Only programs and pages of this machine may talk to the daemon."""

import socket

import pytest

from stringd.server.settings import SettingsError, load_settings
from tests.requirements import proves
from tests.support.daemon import Daemon
from tests.support.http import Wire, message, request

LOOPBACK = ["127.0.0.1", "127.0.0.1:9999", "localhost", "localhost:3100", "LocalHost", "[::1]:80"]
STRANGE = [
    "evil.example",
    "127.0.0.1.evil.com",
    "127.0.0.1.evil.com:3100",
    "evil.com:3100",
    "localhost.evil.com",
    "evil@127.0.0.1",
    "127.0.0.1@evil.com",
    "127.0.0.1:80:80",
    "127.0.0.1:port",
    "127.0.0.1/evil.com",
    "192.168.0.1",
    "0.0.0.0",
    "[::]",
    "",
    "127.0.0.1, evil.com",
    "2130706433",
    "127.1",
    "0x7f.0.0.1",
    "[::1].evil.com",
    "[::ffff:10.0.0.1]",
    "127.0.0.1:",
]


def with_host(port: int, host: str | None, path: str = "/users") -> int:
    lines = [f"GET {path} HTTP/1.1", *([f"Host: {host}"] if host is not None else []), "", ""]
    with Wire(port) as wire:
        answer = wire.send("\r\n".join(lines).encode()).receive()
        if answer.status == 403:
            assert answer.json["error"].startswith("Forbidden: ")
        return answer.status


@proves("TRUST-07")
@pytest.mark.parametrize("host", LOOPBACK)
def test_a_host_of_this_machine_passes(daemon: Daemon, host: str) -> None:
    assert with_host(daemon.port, host) == 200


@proves("TRUST-07")
@pytest.mark.parametrize("host", [*STRANGE, None])
def test_any_other_host_is_refused(daemon: Daemon, host: str | None) -> None:
    assert with_host(daemon.port, host) == 403


@proves("TRUST-07")
def test_a_host_given_twice_is_refused(daemon: Daemon) -> None:
    assert with_host(daemon.port, "127.0.0.1\r\nHost: evil.com") == 403
    assert with_host(daemon.port, "evil.com\r\nHost: 127.0.0.1") == 403


@proves("TRUST-07")
def test_the_host_of_a_whole_url_counts(daemon: Daemon) -> None:
    assert with_host(daemon.port, "127.0.0.1", "http://evil.com/users") == 403
    assert with_host(daemon.port, "127.0.0.1", "http://evil.com:3100/users") == 403
    assert with_host(daemon.port, "evil.com", "http://localhost:3100/users") == 200


@proves("TRUST-08")
@pytest.mark.parametrize(
    "origin",
    [
        "http://localhost:5173",
        "http://127.0.0.1",
        "https://localhost",
        "http://[::1]:8080",
        "https://listed.example",
        "chrome-extension://abc",
    ],
)
def test_local_and_listed_pages_pass(daemon: Daemon, origin: str) -> None:
    assert request(daemon.port, "GET", "/users", headers={"Origin": origin}).status == 200


@proves("TRUST-08")
@pytest.mark.parametrize(
    "origin",
    [
        "null",
        "",
        "https://evil.example",
        "https://listed.example.evil.com",
        "https://listed.example:8443",
        "http://listed.example",
        "http://localhost.evil.com",
        "http://127.0.0.1.evil.com",
        "http://evil.com#http://localhost",
        "file://",
        "localhost",
        "chrome-extension://abcd",
        "ftp://localhost",
        "http://localhost, https://evil.example",
    ],
)
def test_other_pages_are_refused(daemon: Daemon, origin: str) -> None:
    answer = request(daemon.port, "GET", "/users", headers={"Origin": origin})
    assert answer.status == 403
    assert answer.json == {"error": f"Forbidden: Origin is not allowed: {origin}"}


@proves("TRUST-07", "TRUST-08", "HEALTH-01")
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/users"),
        ("POST", "/users"),
        ("DELETE", "/users/x"),
        ("GET", "/sessions"),
        ("POST", "/sessions"),
        ("DELETE", "/sessions/x/y"),
        ("POST", "/exec"),
        ("POST", "/shutdown"),
        ("GET", "/nothing"),
        ("GET", "/ws"),
        ("HEAD", "/health"),
        ("POST", "/health"),
    ],
)
def test_every_request_but_the_liveness_check_is_guarded(
    daemon: Daemon, method: str, path: str
) -> None:
    for headers in ({"Host": "evil.com"}, {"Origin": "null"}):
        assert request(daemon.port, method, path, headers=headers).status == 403
        assert request(daemon.port, "GET", "/health", headers=headers).status == 200


@proves("TRUST-09")
@pytest.mark.parametrize(
    "headers", [{"Host": "evil.com"}, {"Origin": "null"}, {"Origin": "https://evil.example"}]
)
def test_the_upgrade_to_websocket_is_guarded(daemon: Daemon, headers: dict[str, str]) -> None:
    upgrade = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
    }
    with Wire(daemon.port) as wire:
        assert wire.send(message("GET", "/ws", headers={**upgrade, **headers})).receive()[0] == 403
        assert wire.rest() == b""
    with Wire(daemon.port) as wire:
        status, answered = wire.send(message("GET", "/ws", headers=upgrade)).head()
        assert status == 101
        assert answered["Sec-WebSocket-Accept"] == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="


@proves("TRUST-01")
def test_the_daemon_listens_on_loopback_only(daemon: Daemon) -> None:
    listening = []
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with open(table, encoding="ascii") as file:
            rows = [line.split() for line in file.readlines()[1:]]
        listening += [row[1].split(":") for row in rows if row[3] == "0A"]
    loopback = socket.inet_aton("127.0.0.1")[::-1].hex().upper()
    ours = [address for address, port in listening if int(port, 16) == daemon.port]
    assert ours == [loopback]


@proves("TRUST-14")
@pytest.mark.parametrize(
    "headers", [{"Host": "evil.com"}, {"Origin": "null"}, {"Origin": "https://evil.example"}]
)
def test_a_foreign_page_learns_only_that_the_daemon_is_well(
    daemon: Daemon, headers: dict[str, str]
) -> None:
    answer = request(daemon.port, "GET", "/health", headers=headers)
    assert answer.json == {"ok": True, "status": "ok"}
    own = request(daemon.port, "GET", "/health", headers={"Origin": "https://listed.example"})
    assert "users" in own.json


@proves("TRUST-13")
def test_strict_origins_are_the_daemons_own_and_the_listed(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    directory = tmp_path_factory.mktemp("strict")
    listed = {"STRINGD_ORIGINS": "strict", "STRINGD_ALLOW_ORIGINS": "http://localhost:5173"}
    with Daemon(directory, **listed) as daemon:
        passing = [f"http://{host}:{daemon.port}" for host in ("127.0.0.1", "localhost", "[::1]")]
        for origin in (*passing, "http://localhost:5173"):
            answer = request(daemon.port, "GET", "/users", headers={"Origin": origin})
            assert answer.status == 200, origin
        for origin in ("http://localhost:8888", "http://127.0.0.1", "https://evil.example", "null"):
            answer = request(daemon.port, "GET", "/users", headers={"Origin": origin})
            assert answer.status == 403, origin
        assert request(daemon.port, "GET", "/users").status == 200


@proves("TRUST-13")
def test_a_misspelt_kind_of_origins_is_refused() -> None:
    with pytest.raises(SettingsError, match="STRINGD_ORIGINS must be local or strict"):
        load_settings({"STRINGD_ORIGINS": "strickt"})


@proves("TRUST-07", "TRUST-08")
@pytest.mark.parametrize("strange", [{"Origin": "https://evil.example"}, {"Host": "evil.example"}])
@pytest.mark.parametrize(
    "length", [{"Content-Length": "9000000"}, {"Transfer-Encoding": "chunked"}]
)
def test_a_foreign_page_is_refused_before_its_body_is_sent(
    daemon: Daemon, strange: dict[str, str], length: dict[str, str]
) -> None:
    for expect in ({}, {"Expect": "100-continue"}):
        with Wire(daemon.port) as wire:
            headers = {**strange, **length, **expect}
            answer = wire.send(message("POST", "/exec", headers=headers)).receive()
            assert (answer.status, answer.headers["Connection"]) == (403, "close")
            assert answer.json["error"].startswith("Forbidden: ")
            assert wire.rest() == b""


@proves("TRUST-08")
def test_a_foreign_page_that_sends_everything_can_read_why_it_is_refused(daemon: Daemon) -> None:
    headers = {"Origin": "https://evil.example"}
    with Wire(daemon.port) as wire:
        wire.send(message("POST", "/exec", b"x" * 9_000_000, headers))
        assert wire.receive().status == 403

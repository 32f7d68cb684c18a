"""One daemon for all tests of a module, and a caller for it."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from stringd.client.exec import ExecReply, execute, json_object
from stringd.client.http import DaemonConnection
from tests.support.daemon import WAIT_SECONDS, Daemon

USER = "tester"


class Caller:
    """Sends commands as one registered user, each request on a connection of its own."""

    def __init__(self, daemon: Daemon) -> None:
        self.daemon = daemon
        self.home = daemon.home
        self.request("POST", "/users", id=USER, home=str(daemon.home))

    def request(self, method: str, path: str, **fields: str) -> bytes:
        connection = DaemonConnection(self.daemon.port, WAIT_SECONDS)
        try:
            return connection.request(method, path, json_object(**fields)).body
        finally:
            connection.close()

    def __call__(self, topic: str, text: str, cwd: Path | None = None) -> ExecReply:
        connection = DaemonConnection(self.daemon.port, WAIT_SECONDS)
        try:
            return execute(connection, USER, topic, text, str(cwd) if cwd else None)
        finally:
            connection.close()


StartDaemon = Callable[..., Caller]


@pytest.fixture(scope="module")
def start_daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StartDaemon]:
    daemons: list[Daemon] = []

    def start(**environment: str) -> Caller:
        daemon = Daemon(tmp_path_factory.mktemp("daemon"), **environment)
        daemon.start()
        daemons.append(daemon)
        return Caller(daemon)

    yield start
    for daemon in daemons:
        daemon.stop()


@pytest.fixture
def own_daemon(tmp_path: Path) -> Iterator[Caller]:
    """A daemon for one test that stops it or does what others would see."""
    with Daemon(tmp_path) as daemon:
        yield Caller(daemon)

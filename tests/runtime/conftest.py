"""One daemon for all tests that leave it as they found it, and a person for each of them."""

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from tests.support.daemon import Daemon
from tests.support.person import Person
from tests.support.web import WebServer

_numbers = count(1)


@pytest.fixture(scope="session")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with Daemon(tmp_path_factory.mktemp("daemon")) as running:
        yield running


@pytest.fixture
def person(daemon: Daemon, tmp_path: Path) -> Person:
    return Person(daemon.port, f"person-{next(_numbers)}", tmp_path / "home")


@pytest.fixture
def web() -> Iterator[WebServer]:
    with WebServer() as server:
        yield server

"""One daemon for the clients that leave it as they found it, and a user for each test."""

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from tests.client.support import Account
from tests.support.daemon import Daemon

_numbers = count(1)


@pytest.fixture(scope="session")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with Daemon(tmp_path_factory.mktemp("daemon"), STRINGD_QUEUE_TIMEOUT_MS="1500") as running:
        yield running


@pytest.fixture
def account(daemon: Daemon, tmp_path: Path) -> Account:
    return Account(f"client-{next(_numbers)}", tmp_path / "home", daemon.port)

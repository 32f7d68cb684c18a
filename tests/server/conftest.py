"""One daemon for all tests that leave it as they found it, and a user for each of them."""

from collections.abc import Iterator
from itertools import count

import pytest

from tests.support.daemon import Daemon
from tests.support.http import User

_numbers = count(1)


@pytest.fixture(scope="session")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    listed = "https://listed.example, chrome-extension://abc"
    with Daemon(tmp_path_factory.mktemp("daemon"), STRINGD_ALLOW_ORIGINS=listed) as running:
        yield running


@pytest.fixture
def user(daemon: Daemon, tmp_path_factory: pytest.TempPathFactory) -> User:
    return User(daemon.port, f"user-{next(_numbers)}", tmp_path_factory.mktemp("home"))

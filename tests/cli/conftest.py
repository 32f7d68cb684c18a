"""One daemon for the commands that only talk to it."""

from collections.abc import Iterator
from itertools import count

import pytest

from tests.support.commands import environment
from tests.support.daemon import Daemon

_numbers = count(1)


@pytest.fixture(scope="session")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with Daemon(tmp_path_factory.mktemp("daemon")) as running:
        yield running


@pytest.fixture
def env(daemon: Daemon, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A user's own environment, with a home nobody else uses."""
    user = f"user-{next(_numbers)}"
    home = str(tmp_path_factory.mktemp("home"))
    return environment(daemon, STRINGD_USER=user, STRINGD_HOME=home)

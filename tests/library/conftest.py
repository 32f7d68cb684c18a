"""One daemon for all programs of this room."""

from collections.abc import Iterator

import pytest

from tests.support.daemon import Daemon


@pytest.fixture(scope="session")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with Daemon(tmp_path_factory.mktemp("daemon")) as running:
        yield running

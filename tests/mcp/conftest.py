"""Two daemons: a patient one, and one that answers with a handle almost at once."""

from collections.abc import Iterator
from itertools import count

import pytest

from tests.mcp.support import TRANSPORTS, Connect
from tests.support.daemon import Daemon

_numbers = count(1)


@pytest.fixture(scope="session")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with Daemon(tmp_path_factory.mktemp("daemon")) as running:
        yield running


@pytest.fixture(scope="session")
def hasty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    directory = tmp_path_factory.mktemp("hasty")
    with Daemon(directory, STRINGD_MCP_HOLD_MS="100") as running:
        yield running


@pytest.fixture(params=TRANSPORTS)
def connect(request: pytest.FixtureRequest) -> Connect:
    """The official client over each transport and in each era of the protocol."""
    return TRANSPORTS[request.param]


@pytest.fixture
def user() -> str:
    return f"agent-{next(_numbers)}"

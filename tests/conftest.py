"""Fixtures every room shares."""

import signal
from collections.abc import Iterator

import hypothesis
import pytest

from tests.support.leftovers import Snapshot

# A shell that starts us in the background ignores Ctrl-C for us and for every program we start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# A property holds or not; how long it takes depends on what else the machine does.
# `make test` tries the same examples everywhere; `make soak` explores new ones.
hypothesis.settings.register_profile("stringd", deadline=None, derandomize=True, database=None)
hypothesis.settings.register_profile("explore", deadline=None, print_blob=True)
hypothesis.settings.load_profile("stringd")


@pytest.fixture(autouse=True)
def nothing_left_over() -> Iterator[None]:
    """Fail the test that leaves a program running or a socket open, and no later one.

    Wider fixtures are set up before this one, so what they keep is known to it.
    """
    before = Snapshot()
    yield
    assert before.leftovers() == [], "the test left these behind"


@pytest.fixture
def anyio_backend() -> str:
    """Async tests run on asyncio: it is what the daemon runs on."""
    return "asyncio"

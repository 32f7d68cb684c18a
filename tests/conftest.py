"""Fixtures every room shares."""

import signal

import hypothesis
import pytest

# A shell that starts us in the background ignores Ctrl-C for us and for every program we start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# A property holds or not; how long it takes depends on what else the machine does.
hypothesis.settings.register_profile("stringd", deadline=None)
hypothesis.settings.load_profile("stringd")


@pytest.fixture
def anyio_backend() -> str:
    """Async tests run on asyncio: it is what the daemon runs on."""
    return "asyncio"

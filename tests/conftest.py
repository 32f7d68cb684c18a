"""Fixtures every room shares."""

import hypothesis
import pytest

# A property holds or not; how long it takes depends on what else the machine does.
hypothesis.settings.register_profile("stringd", deadline=None)
hypothesis.settings.load_profile("stringd")


@pytest.fixture
def anyio_backend() -> str:
    """Async tests run on asyncio: it is what the daemon runs on."""
    return "asyncio"

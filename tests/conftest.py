"""Fixtures every room shares."""

import pytest


@pytest.fixture
def anyio_backend() -> str:
    """Async tests run on asyncio: it is what the daemon runs on."""
    return "asyncio"

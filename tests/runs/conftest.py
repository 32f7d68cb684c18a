"""Fixtures of the runs tests."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.runs.support import RunsServer, Watcher, serving


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[RunsServer]:
    async with serving(tmp_path) as running:
        yield running


@pytest.fixture
async def watcher(server: RunsServer) -> Watcher:
    return await server.watcher()

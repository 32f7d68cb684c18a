"""Fixtures of the runs tests."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from stringd.runs.handlers.client import ConnectedClient
from tests.runs.schema import problems
from tests.runs.support import RunsServer, Watcher, serving


@pytest.fixture(autouse=True)
def strict(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever any client is sent in any test is checked where it is sent, read or not."""
    push = ConnectedClient.push

    def checked(client: ConnectedClient, frame: bytes) -> None:
        assert problems(json.loads(frame)) == [], frame
        push(client, frame)

    monkeypatch.setattr(ConnectedClient, "push", checked)


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[RunsServer]:
    async with serving(tmp_path) as running:
        yield running


@pytest.fixture
async def watcher(server: RunsServer) -> Watcher:
    return await server.watcher()

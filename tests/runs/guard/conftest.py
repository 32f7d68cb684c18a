"""The stage for the tests of this room."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from stringd.runs.agents.extensions import Registry
from tests.runs.guard.reach import Scene
from tests.runs.guard.stage import Stage
from tests.runs.support import serving


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    registry = Registry()
    async with serving(tmp_path, registry=registry) as server:
        scene = Scene.at(tmp_path, tmp_path / "data" / "trash")
        made = Stage(server, await server.watcher(), scene)
        registry.hooks.before_tool_call.append(made.before)
        registry.hooks.after_tool_call.append(made.after)
        yield made

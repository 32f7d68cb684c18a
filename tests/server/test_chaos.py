"""The daemon is killed at random under mixed load: nothing acknowledged is lost or done twice."""

import secrets
from pathlib import Path

import pytest

from tests.requirements import proves
from tests.support.chaos import kill_often

pytestmark = pytest.mark.anyio


@proves("HEALTH-09")
async def test_four_kills_lose_nothing_and_repeat_nothing(tmp_path: Path) -> None:
    await kill_often(tmp_path, kills=4, seed=1)


@pytest.mark.soak
@pytest.mark.timeout(3600)
async def test_two_hundred_kills_lose_nothing_and_repeat_nothing(tmp_path: Path) -> None:
    await kill_often(tmp_path, kills=200, seed=secrets.randbelow(10**6))

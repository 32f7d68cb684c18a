"""An installation that a crash interrupts is there whole, old or new, or not at all."""

import asyncio
import fcntl
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from stringd.runtime.packages.interrupted import Interrupted
from tests.requirements import proves
from tests.runtime.packages.doomed_install import say
from tests.support.daemon import WAIT_SECONDS

pytestmark = pytest.mark.anyio

SCRIPT = Path(__file__).with_name("doomed_install.py")
PAGE = "---\ntype: app\nname: kept\n---\n# {}\n\n```act.go\nCLI echo {}\n```\n"
INSTALL = ("file:main", "/install ./app")


def version(home: Path, name: str) -> None:
    (home / "app").mkdir(parents=True, exist_ok=True)
    (home / "app" / "string.md").write_text(PAGE.format(name, name), "utf-8")
    (home / "app" / "more.md").write_text(name, "utf-8")


def leftovers(home: Path) -> list[str]:
    hidden = {".installed.json", ".saved.json"}
    return [each.name for each in (home / "packages").glob(".*") if each.name not in hidden]


@proves("KEEP-05")
@pytest.mark.parametrize("update", [False, True], ids=["first", "update"])
@pytest.mark.parametrize("point", ["staged", "retired", "placed", "recorded", "registered"])
async def test_a_kill_leaves_the_old_or_the_new_app(
    tmp_path: Path, point: str, update: bool
) -> None:
    data, home = tmp_path / "data", tmp_path / "home"
    if update:
        version(home, "one")
        (installed,) = await say(data, home, INSTALL)
        assert installed.ok, installed
    version(home, "two")
    words = (sys.executable, "-P", str(SCRIPT), str(data), str(home), point)
    done = await asyncio.to_thread(subprocess.run, words, timeout=WAIT_SECONDS, check=False)
    assert done.returncode == -signal.SIGKILL
    opened, told = await say(data, home, ("app:kept", "/open"), ("app:kept", "/act.go"))
    finished = point == "registered" or (update and point == "recorded")
    if update or finished:
        assert told.ok, told
        assert told.content == ("two" if finished else "one")
    else:
        assert not opened.ok
    assert leftovers(home) == []
    again, told = await say(data, home, INSTALL, ("app:kept", "/act.go"))
    assert again.ok, again
    assert told.content == "two"


def test_a_home_in_the_hands_of_another_daemon_is_left_alone(tmp_path: Path) -> None:
    built = tmp_path / "packages" / ".x.tmp"
    built.mkdir(parents=True)
    holder = os.open(built.parent, os.O_RDONLY)
    fcntl.flock(holder, fcntl.LOCK_EX)
    settle = Interrupted()
    settle(str(tmp_path))
    assert built.exists()
    os.close(holder)
    settle(str(tmp_path))
    assert not built.exists()

"""An installation that a crash interrupts is there whole, old or new, or not at all."""

import asyncio
import fcntl
import json
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


async def be_killed(data: Path, home: Path, point: str, command: str) -> None:
    words = (sys.executable, "-P", str(SCRIPT), str(data), str(home), point, command)
    done = await asyncio.to_thread(subprocess.run, words, timeout=WAIT_SECONDS, check=False)
    assert done.returncode == -signal.SIGKILL


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
    await be_killed(data, home, point, INSTALL[1])
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


@pytest.mark.parametrize("point", ["marked", "first file", "cleared", "unregistered", "struck"])
async def test_a_kill_while_an_app_is_removed_leaves_nothing_of_it(
    tmp_path: Path, point: str
) -> None:
    data, home = tmp_path / "data", tmp_path / "home"
    version(home, "one")
    (installed,) = await say(data, home, INSTALL)
    assert installed.ok, installed
    (home / "packages" / "kept" / "made.txt").write_text("by an action", "utf-8")
    await be_killed(data, home, point, "/uninstall kept")
    opened, listed = await say(data, home, ("app:kept", "/open"), ("file:main", "/apps"))
    assert opened.code == "NOT_FOUND", opened
    assert "kept" not in (listed.content or "")
    assert not (home / "packages" / "kept").exists()
    assert leftovers(home) == []
    (made,) = home.rglob("made.txt")
    assert made.read_text("utf-8") == "by an action"
    known = json.loads((home / "packages" / ".installed.json").read_bytes())
    assert known["packages"] == {}
    assert list(known["sources"]) == ["kept"]
    again, told = await say(data, home, INSTALL, ("app:kept", "/act.go"))
    assert again.ok, again
    assert told.content == "one"


def test_marks_that_name_no_package_touch_nothing(tmp_path: Path) -> None:
    packages = tmp_path / "packages"
    (packages / "app").mkdir(parents=True)
    (packages / "app" / "string.md").write_text("kept", "utf-8")
    (packages / "...gone").write_text("null", "utf-8")
    (packages / "...old").mkdir()
    (packages / "....gone").write_text("null", "utf-8")
    (packages / "....old").mkdir()
    Interrupted()(str(tmp_path))
    assert (packages / "app" / "string.md").read_text("utf-8") == "kept"


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

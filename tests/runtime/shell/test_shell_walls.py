"""A bash behind walls: it works as any other, and changes nothing but its own places."""

import functools
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from stringd.runtime.shell import walls as walls_module
from stringd.runtime.shell.command import ShellLimits
from stringd.runtime.shell.once import OneShot
from stringd.runtime.shell.reply import ShellEnding
from stringd.runtime.shell.shell import Shell
from stringd.runtime.shell.walls import ShellWalls
from stringd.system.processes.table import descendants, find
from stringd.system.sandbox import Bubblewrap, Landlock, Level, enclose
from stringd.system.sandbox.walls import working_bubblewrap, working_landlock
from tests.runtime.shell.support import alive
from tests.support.daemon import WAIT_SECONDS
from tests.system.sandbox.cage import canary_parent

pytestmark = pytest.mark.anyio
LIMITS = ShellLimits(hard=WAIT_SECONDS, quiet=5.0)


@pytest.fixture
def base(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home, a project in it and a canary beside them, outside the temporary directory."""
    parent = canary_parent()
    if parent is None:
        pytest.skip("there is no directory outside /tmp to plant canaries in")
    base = Path(tempfile.mkdtemp(prefix="stringd-canaries-", dir=parent)).resolve()
    for name in ("home/packages", "project", ".ssh"):
        (base / name).mkdir(parents=True)
    (base / ".ssh" / "id").write_text("CANARY")
    (base / "canary").write_text("as it was")
    monkeypatch.setenv("HOME", str(base))
    monkeypatch.setenv("GITHUB_TOKEN", "CANARY")
    yield base
    shutil.rmtree(base)


@pytest.fixture(params=["bubblewrap", "landlock"])
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    found = working_bubblewrap() if request.param == "bubblewrap" else working_landlock()
    if not isinstance(found, Bubblewrap | Landlock):
        pytest.skip(found.reason)
    monkeypatch.setattr(walls_module, "enclose", functools.partial(enclose, walls=found))
    return str(request.param)


@pytest.fixture
async def shell(base: Path, kind: str) -> AsyncIterator[Shell]:
    shell = Shell.launch(
        home=str(base / "home"),
        cwd=str(base / "project"),
        base=os.environ,
        limits=LIMITS,
        walls=ShellWalls(Level.WORKSPACE, own=("packages",)),
    )
    await shell.ready()
    yield shell
    await shell.close()


async def test_a_shell_behind_walls_keeps_its_state(shell: Shell, base: Path) -> None:
    reply = await shell.run("x=5; mkdir sub; cd sub; echo here; false")
    assert (reply.exit_code, reply.output) == (1, "here")
    assert reply.cwd == str(base / "project" / "sub")
    reply = await shell.run("echo $? $x; test -t 0 && echo terminal; set -o | grep monitor")
    assert reply.output.split() == ["1", "5", "terminal", "monitor", "on"]
    assert shell.directory == str(base / "project" / "sub")
    assert shell.level is Level.WORKSPACE


async def test_it_changes_its_own_places_and_sees_no_secrets(shell: Shell, base: Path) -> None:
    reply = await shell.run(
        f"echo new > made; echo new > {base}/home/made; echo x > {base}/canary; "
        f"echo x > {base}/home/packages/x; cat {base}/.ssh/id; env; grep Seccomp: /proc/self/status"
    )
    assert "CANARY" not in reply.output
    assert reply.output.split()[-1] == "2"
    assert (base / "project" / "made").read_text() == "new\n"
    assert (base / "home" / "made").read_text() == "new\n"
    assert (base / "canary").read_text() == "as it was"
    assert not (base / "home" / "packages" / "x").exists()


async def test_what_waits_for_input_gets_it(shell: Shell) -> None:
    reply = await shell.run("read -r -p 'name? ' name; echo hello $name")
    assert (reply.ending, reply.exit_code) == (ShellEnding.WAITING, None)
    assert (await shell.type(b"ann\n")).output.endswith("hello ann")


async def test_a_command_is_killed_and_the_shell_survives(shell: Shell) -> None:
    pid = shell.pid
    assert (await shell.run("cat; echo not here")).ending is ShellEnding.WAITING
    reply = await shell.kill()
    assert reply.exit_code not in (0, None)
    assert "not here" not in reply.output
    assert (await shell.run("echo again")).output == "again"
    assert shell.pid == pid


async def test_closing_ends_everything_inside(shell: Shell) -> None:
    await shell.run("setsid sleep 1000 & sleep 1001 & echo done")
    own = find(shell.pid)
    assert own is not None
    inside = [process.pid for process in descendants(own.parent)]
    assert len(inside) >= 3
    await shell.close()
    assert not any(map(alive, inside))


async def test_the_end_of_the_shell_is_its_own(shell: Shell) -> None:
    assert (await shell.run("exit 3")).exit_code == 3
    assert not shell.usable


async def test_one_command_behind_walls(base: Path, kind: str) -> None:
    def once(text: str) -> OneShot:
        return OneShot(
            text,
            home=str(base / "home"),
            cwd=str(base / "project"),
            base=os.environ,
            walls=ShellWalls(Level.READ_ONLY),
        )

    reply = await once("echo x > made; cat ../.ssh/id; echo said; exit 4").reply(WAIT_SECONDS)
    assert reply.exit_code == 4
    assert reply.output.endswith("said")
    assert "CANARY" not in reply.output
    assert not (base / "project" / "made").exists()
    killed = await once("kill -9 $$").reply(WAIT_SECONDS)
    assert killed.exit_code == 1
    assert killed.notes

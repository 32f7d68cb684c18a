"""Who says that a sandbox shares the network, and for how long that counts."""

import os
import subprocess
from pathlib import Path

from stringd.system.network_walls import NetworkWalls, is_walled
from stringd.system.processes.table import find


def test_without_such_sandboxes_nobody_is_looked_for(tmp_path: Path) -> None:
    walls = NetworkWalls(tmp_path / "networked")
    assert not walls.hold(1)
    walls.note()
    # There is none below this process: nobody has to be found.
    assert not walls.hold(1)
    assert [path.name for path in (tmp_path / "networked").iterdir()] == [own_name()]
    walls.forget()
    assert list((tmp_path / "networked").iterdir()) == []


def test_what_killed_daemons_said_is_removed(tmp_path: Path) -> None:
    ended = subprocess.run(["sh", "-c", "echo $$"], capture_output=True, text=True, check=True)
    names = (f"{ended.stdout.strip()}-1", f"{os.getpid()}-1", "notes")
    for name in names:
        (tmp_path / name).touch()
    assert not NetworkWalls(tmp_path).hold(1)
    assert list(tmp_path.iterdir()) == []


def test_a_filter_that_this_process_has_too_is_not_a_wall() -> None:
    assert not is_walled(os.getpid())
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as child:
        assert not is_walled(child.pid)


def own_name() -> str:
    own = find(os.getpid())
    assert own is not None
    return f"{own.pid}-{own.started}"

"""What a command's variables do before its walls are there: nothing."""

import subprocess
from pathlib import Path

import pytest

from stringd.system.sandbox import Bubblewrap, SandboxSpec, available
from stringd.system.sandbox.bubblewrap import bubblewrap_argv
from stringd.system.sandbox.environment import part
from stringd.system.sandbox.limits import Group
from stringd.system.sandbox.view import view


@pytest.mark.parametrize("name", ["PATH", "LD_PRELOAD", "BASH_ENV", "SHELLOPTS", "GLIBC_TUNABLES"])
def test_what_acts_on_the_walls_is_set_inside_only(name: str) -> None:
    outside, inside = part({name: "/chosen", "LANG": "C"})
    assert outside.get(name) != "/chosen"
    assert (inside[name], outside["LANG"]) == ("/chosen", "C")


@pytest.mark.skipif(not isinstance(available(), Bubblewrap), reason="no bubblewrap here")
def test_the_walls_are_not_made_by_programs_of_the_workspace(tmp_path: Path) -> None:
    """A command chooses its PATH, and control groups are made by a program."""
    walls = available()
    assert isinstance(walls, Bubblewrap)
    planted = tmp_path / "bin"
    planted.mkdir()
    (planted / "mkdir").write_text(f'#!/bin/sh\n: >{tmp_path}/ran\n/bin/mkdir "$1"\n', "utf-8")
    (planted / "mkdir").chmod(0o755)
    (planted / "hello").write_text("#!/bin/sh\necho hello from inside\n", "utf-8")
    (planted / "hello").chmod(0o755)
    spec = SandboxSpec(workspace=(tmp_path / "bin",))
    outside, inside = part({"PATH": f"{planted}:/usr/bin:/bin"})
    group = Group(str(tmp_path / "group"), ())
    argv = bubblewrap_argv(walls, spec, view(spec), ["hello"], variables=inside, group=group)
    done = subprocess.run(argv, env=outside, capture_output=True, text=True, check=True, cwd="/")
    assert done.stdout == "hello from inside\n"
    assert (tmp_path / "group" / "cgroup.procs").exists()
    assert not (tmp_path / "ran").exists()

"""What earlier versions stored is found by this one. `tests/support/golden.py` keeps it."""

import os
from pathlib import Path

import pytest

from stringd import __version__
from tests.support.commands import run
from tests.support.daemon import Daemon
from tests.support.golden import KEPT

VERSIONS = sorted(path.name.removesuffix(".tar.gz") for path in KEPT.glob("*.tar.gz"))


def test_this_version_is_among_them() -> None:
    assert __version__ in VERSIONS, "run python -m tests.support.golden"


@pytest.mark.parametrize("version", VERSIONS)
def test_an_update_finds_everything(version: str, tmp_path: Path) -> None:
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("STRINGD_")}
    env = {**inherited, "HOME": str(tmp_path)}
    done = run("stringd", "restore", str(KEPT / f"{version}.tar.gz"), env=env)
    assert done.code == 0, done.err
    with Daemon(tmp_path, STRINGD_DATA_DIR=str(tmp_path / ".string/daemon")) as daemon:
        env = daemon.child_environment()
        assert "a.md" in run("string", "file:main", "/info", env=env).out
        assert "second" in run("string", "file:main", "/open a.md", env=env).out
        assert "Oslo" in run("string", "file:main", "/set", env=env).out
        assert run("string", "file:main", "/undo", env=env).code == 0
        assert "first" in run("string", "file:main", "/open a.md", env=env).out
        assert "kept-run" in run("stringd", "runs", env=env).out
        assert "hi" in run("stringd", "runs", "show", "kept-run", env=env).out
        assert "openai" in run("stringd", "keys", env=env).out
        assert '"damage":[]' in run("stringd", "status", "--json", env=env).out.replace(" ", "")

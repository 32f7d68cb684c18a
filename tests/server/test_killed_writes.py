"""A daemon that is killed while it puts a file into place; the next one clears what is left."""

import http.client
from pathlib import Path

import pytest

from stringd.system.temporary_names import DIRECTORY, is_temporary
from tests.support.daemon import Daemon
from tests.support.person import Person

_KILLED_AT_RENAME = """
import os, signal, sys
from stringd.cli.main import main

rename = os.rename

def killed(source, target, **more):
    if target == "page.md":
        os.kill(os.getpid(), signal.SIGKILL)
    rename(source, target, **more)

os.rename = killed
sys.exit(main())
"""


class _Mortal(Daemon):
    program: tuple[str, ...] = ("-c", _KILLED_AT_RENAME)


def _left(base: Path) -> list[Path]:
    return [path for path in base.rglob("*") if is_temporary(path.name)]


def test_the_next_daemon_removes_what_a_killed_one_was_writing(tmp_path: Path) -> None:
    daemon = _Mortal(tmp_path)
    page = daemon.home / "page.md"
    page.write_text("old\n", "utf-8")
    kept = daemon.home / ".page.md.0123456789abcdef"
    kept.write_text("the owner's\n", "utf-8")
    daemon.start()
    with pytest.raises((OSError, http.client.HTTPException)):
        Person(daemon.port, "u", daemon.home).says("/write page.md\nnew\n", "file:x")
    daemon.kill()
    (left,) = [path for path in _left(tmp_path) if path != kept]
    assert left.parent == daemon.home
    daemon.program = Daemon.program
    with daemon:
        assert _left(tmp_path) == [kept]
        assert any(f"removed {left}" in line for line in daemon.output)
        Person(daemon.port, "u", daemon.home).gets("/write page.md\nnew\n", "file:x")
        assert page.read_text("utf-8") == "new\n"
    assert list((daemon.data_dir / DIRECTORY).iterdir()) == []

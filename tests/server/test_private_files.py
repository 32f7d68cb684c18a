"""Whatever umask the daemon has: its own files are private, those of users follow the umask."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.runs.hostile import write
from tests.runs.support import scripted, sequential, strategy
from tests.support.commands import environment, run
from tests.support.daemon import Daemon


class OpenDaemon(Daemon):
    """Started by somebody who lets everybody read and write."""

    program = ("-c", "import os; os.umask(0); from stringd.cli.main import main; main()")


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    with OpenDaemon(tmp_path, "--log") as running:
        yield running


def test_everything_of_the_daemon_is_private_and_files_of_users_follow_the_umask(
    daemon: Daemon,
) -> None:
    env = environment(daemon)
    for topic, command in (
        ("file:main", "/write a.md\none"),
        ("file:main", "/write a.md\ntwo"),
        ("file:main", '/set $SECRET = "x"'),
        ("file:main", '/set {var} = "x"'),
        ("bash:main", "touch made-by-shell"),
    ):
        done = run("string", topic, command, env=env, cwd=daemon.directory)
        assert done.code == 0, done
    replies = [
        {"tools": [{"name": "create_file", "args": {"path": "made-by-run", "content": "x"}}]},
        {"tools": [{"name": "create_file", "args": {"path": "gone", "content": "x"}}]},
        {"tools": [{"name": "delete_file", "args": {"path": "gone"}}]},
    ]
    agent = {**scripted(*replies, "end"), "tools": ["create_file", "delete_file"]}
    path = write(daemon.directory / "s.yaml", strategy(sequential("a"), a=agent))
    work = daemon.directory / "work"
    work.mkdir()
    done = run("stringd", "run", str(path), "-i", "x", "--plain", env=env, cwd=work)
    assert done.code == 0, done
    own = [daemon.data_dir, daemon.directory / ".string"]
    files = [path for folder in own for path in (folder, *folder.rglob("*"))]
    assert len(files) > 15
    wide = [path for path in files if path.lstat().st_mode & 0o077 and not path.is_symlink()]
    assert wide == []
    made = [daemon.home / "a.md", work / "made-by-run", daemon.directory / "made-by-shell"]
    assert [oct(path.stat().st_mode & 0o777) for path in made] == ["0o666"] * 3


def test_the_daemon_leaves_its_umask_as_it_was(daemon: Daemon) -> None:
    assert daemon.process is not None
    status = Path(f"/proc/{daemon.process.pid}/status").read_text("ascii")
    assert "Umask:\t0000\n" in status

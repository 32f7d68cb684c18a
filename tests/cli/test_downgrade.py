"""An earlier stringd on data of a later one, and an update that changes how data is written."""

import hashlib
import json
import tarfile
from pathlib import Path

import pytest

from stringd.cli.backup.before_update import back_up
from stringd.cli.backup.save import save
from stringd.system.data_format import FORMAT, NAME, bring_up_to_date
from tests.support.commands import run
from tests.support.daemon import Daemon

LATER = json.dumps({"format": FORMAT + 1, "version": "99.1.0"})


def content(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.fixture
def later(tmp_path: Path) -> Daemon:
    """A daemon that is stopped, and whose data a later version has used since."""
    with Daemon(tmp_path) as daemon:
        done = run("string", "file:main", "/set {x} = 1", env=daemon.child_environment())
        assert done.code == 0
    (daemon.data_dir / NAME).write_text(LATER, "utf-8")
    return daemon


def test_data_of_a_later_version_is_left_as_it_is(later: Daemon) -> None:
    before = content(later.data_dir)
    done = run("stringd", "serve", env=later.child_environment())
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith(f"stringd: {later.data_dir} was written by stringd 99.1.0 (format")
    assert "Install stringd 99.1.0 again" in done.err
    assert content(later.data_dir) == before


def test_whoever_starts_it_in_the_background_reads_why(later: Daemon) -> None:
    done = run("string", "file:main", "/info", env=later.child_environment())
    assert done.code != 0
    assert "was written by stringd 99.1.0" in done.err


def test_a_backup_of_a_later_version_is_not_restored(later: Daemon, tmp_path: Path) -> None:
    file = tmp_path / "later.tar.gz"
    save(file, tmp_path / ".string", later.data_dir, replace=False)
    env = {**later.child_environment(), "STRINGD_DATA_DIR": str(tmp_path / "other")}
    done = run("stringd", "restore", "--replace", str(file), env=env)
    assert done.code == 1
    assert "data that this version cannot read. Nothing was changed" in done.err
    assert not (tmp_path / "other").exists()


def test_an_update_keeps_what_was_there_in_a_backup(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    data = tmp_path / ".string/daemon"
    data.mkdir(parents=True)
    (data / "users.json").write_text("before", "utf-8")
    steps = {1: lambda folder: (folder / "users.json").write_text("after", "utf-8") and None}
    bring_up_to_date(data, "99", lambda: back_up(data), steps=steps, format_number=2)
    (file,) = (tmp_path / ".string/backups").iterdir()
    assert str(file) in capsys.readouterr().err
    with tarfile.open(file) as archive:
        kept = archive.extractfile("data/users.json")
        assert kept is not None
        assert kept.read() == b"before"
    assert (data / "users.json").read_text("utf-8") == "after"

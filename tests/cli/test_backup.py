"""`stringd backup` and `stringd restore`: made on one home, put back on another."""

import gzip
import io
import json
import os
import stat
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from stringd.cli.backup.collect import copy, find
from stringd.cli.backup.manifest import MANIFEST, BackupError
from stringd.cli.backup.moved import PathMove
from stringd.cli.backup.restore import restore
from stringd.cli.backup.save import save
from tests.support.commands import run
from tests.support.daemon import Daemon, free_port

APP = Path(__file__).parents[2] / "examples/apps/notes"


class Kept(NamedTuple):
    """A backup, and the environment of the person who made it while their daemon ran."""

    file: Path
    env: dict[str, str]


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kept]:
    home = tmp_path_factory.mktemp("old")
    data = home / ".string/daemon"
    with Daemon(home, STRINGD_DATA_DIR=str(data)) as daemon:
        env = daemon.child_environment()
        for command in (
            "/set {city} = Oslo",
            "/write a.md\nhello",
            "/open a.md",
            f"/install {APP}",
        ):
            assert run("string", "file:main", command, env=env).code == 0
        assert run("stringd", "keys", "set", "openai", env=env, stdin=b"sk-canary\n").code == 0
        done = run(
            "stringd",
            "run",
            "plan",
            "--model",
            "demo/x",
            "-i",
            "hi",
            "--plain",
            "--run-id",
            "kept-run",
            env=env,
            cwd=home,
        )
        assert done.code == 0
        file = home / "backup.tar.gz"
        done = run("stringd", "backup", str(file), "--json", env=env)
        assert done.code == 0, done.err
        assert json.loads(done.out)["elsewhere"] == []
        refused = run("stringd", "restore", str(file), "--replace", env=env)
        assert refused.code == 1
        assert f"Stop it first: stringd down --port {daemon.port}" in refused.err
        yield Kept(file, env)


def test_everything_is_found_under_another_home(kept: Kept, tmp_path: Path) -> None:
    home = tmp_path / "new"
    home.mkdir()
    env = {**kept.env, "HOME": str(home), "STRINGD_PORT": str(free_port())}
    del env["STRINGD_DATA_DIR"]
    done = run("stringd", "restore", str(kept.file), env=env)
    assert done.code == 0, done.err
    with Daemon(home, STRINGD_DATA_DIR=str(home / ".string/daemon")) as daemon:
        env = daemon.child_environment()
        info = run("string", "file:main", "/info", env=env).out
        assert "a.md" in info
        written = run("string", "file:main", "/write b.md\n{city}", env=env)
        assert written.code == 0
        assert "Oslo" in run("string", "file:main", "/open b.md", env=env).out + info
        assert "hello" in run("string", "file:main", "/open a.md", env=env).out
        assert run("string", "app:notes", "/open app:notes", env=env).code == 0
        undone = run("string", "file:main", "/undo", env=env)
        assert undone.code == 0, undone
        assert "kept-run" in run("stringd", "runs", env=env).out
        assert "openai" in run("stringd", "keys", env=env).out
    old = str(kept.env["HOME"])
    for name in ("trust.json", "daemon/users.json", "daemon/homes.json"):
        assert old not in (home / ".string" / name).read_text("utf-8"), name
    assert stat.S_IMODE((home / ".string/daemon").stat().st_mode) == 0o700


def test_only_its_owner_can_read_a_backup_and_none_is_overwritten_unasked(kept: Kept) -> None:
    assert stat.S_IMODE(kept.file.stat().st_mode) == 0o600
    done = run("stringd", "backup", str(kept.file), env=kept.env)
    assert done.code == 1
    assert "exists. Choose another name, or overwrite it with --replace" in done.err
    with tarfile.open(kept.file) as archive:
        names = archive.getnames()
    assert names[-1] == MANIFEST
    assert not [name for name in names if name.endswith(("daemon.pid", "-wal", ".sock"))]


@pytest.fixture
def places(tmp_path: Path) -> tuple[Path, Path]:
    """`~/.string` and a data directory outside it, with something in both."""
    shared, data = tmp_path / "shared", tmp_path / "data"
    for path in (shared, data):
        path.mkdir()
    (shared / "users").mkdir()
    (shared / "users/page.md").write_text("page")
    (shared / "link").symlink_to("users/page.md")
    (data / "users.json").write_text(json.dumps([{"id": "a", "home": str(shared / "users")}]))
    return shared, data


def test_what_is_there_stays_unless_replaced_and_is_moved_aside_then(
    places: tuple[Path, Path], tmp_path: Path
) -> None:
    shared, data = places
    save(tmp_path / "b", shared, data, replace=False)
    (shared / "users/page.md").write_text("later")
    with pytest.raises(BackupError, match="not empty"):
        restore(tmp_path / "b", shared, data, replace=False)
    assert (shared / "link").read_text() == "later"
    done = restore(tmp_path / "b", shared, data, replace=True)
    assert (shared / "link").read_text() == "page"
    assert sorted(path.name.split(".")[0] for path in done.put_aside) == ["data", "shared"]
    assert "later" in [
        (path / "link").read_text() for path in done.put_aside if "shared" in path.name
    ]
    left = {path.name for path in tmp_path.iterdir()} - {"b", "shared", "data"}
    assert left == {path.name for path in done.put_aside}


@pytest.mark.parametrize(
    "harm", ["cut", "changed", "added", "outside", "no manifest", "no archive"]
)
def test_a_damaged_backup_changes_nothing(
    places: tuple[Path, Path], tmp_path: Path, harm: str
) -> None:
    shared, data = places
    file = tmp_path / "b"
    save(file, shared, data, replace=False)
    _harm(file, harm)
    before = find(shared, data)
    with pytest.raises(BackupError, match=r"backup|damaged"):
        restore(file, shared, data, replace=True)
    assert [each.path for each in find(shared, data)] == [each.path for each in before]
    assert {path.name for path in tmp_path.iterdir()} == {"b", "shared", "data"}


def _harm(file: Path, harm: str) -> None:
    if harm == "cut":
        file.write_bytes(file.read_bytes()[:-40])
        return
    if harm == "no archive":
        file.write_bytes(gzip.compress(b"nothing"))
        return
    with tarfile.open(file) as archive:
        members = [(member, _content(archive, member)) for member in archive]
    if harm == "no manifest":
        members.pop()
    if harm in ("added", "outside"):
        name = "string/new" if harm == "added" else "string/../../canary"
        members.insert(0, (tarfile.TarInfo(name), b""))
    with tarfile.open(file, "w:gz") as archive:
        for member, content in members:
            evil = harm == "changed" and member.name.endswith("page.md")
            archive.addfile(member, io.BytesIO(b"evil" if evil else content))


def _content(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    content = archive.extractfile(member) if member.isreg() else None
    return content.read() if content is not None else b""


def test_a_log_is_kept_up_to_its_last_whole_line(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_bytes(b'{"a":1}\n{"b":')
    copied = copy(log)
    assert copied is not None
    with copied.content as content:
        assert content.read() == b'{"a":1}\n'


def test_only_paths_of_ours_move() -> None:
    move = PathMove((("/old/.string", "/new/.string"),))
    assert move.value(
        {"/old/.string/users/a": ["file:///old/.string/x", "/old/.stringer", "/old"]}
    ) == {"/new/.string/users/a": ["file:///new/.string/x", "/old/.stringer", "/old"]}


def test_without_anything_to_keep_it_says_where_it_looked(tmp_path: Path) -> None:
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("STRINGD_")}
    done = run("stringd", "backup", env={**inherited, "HOME": str(tmp_path)}, cwd=tmp_path)
    assert done.code == 1
    assert f"there is no data directory {tmp_path}/.string/daemon" in done.err
    assert not list(tmp_path.iterdir())

"""What was allowed is what is opened, even when a folder is swapped in between."""

import errno
import os
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import pytest

from stringd.runs.guard.errors import Denied
from stringd.runs.guard.workspace import Workspace, WorkspacePath
from stringd.runs.tools.files import disk
from stringd.runs.tools.output import ToolFailure

WAYS: list[Callable[[WorkspacePath], object]] = [
    disk.read,
    disk.remove,
    lambda place: disk.create(place, b"new"),
    lambda place: disk.replace(place, b"new", 0o644),
]


@pytest.mark.parametrize("way", WAYS)
def test_a_folder_swapped_for_a_link_is_noticed(
    tmp_path: Path, way: Callable[[WorkspacePath], object]
) -> None:
    work, outside = tmp_path / "work", tmp_path / "outside"
    (work / "sub").mkdir(parents=True)
    outside.mkdir()
    for folder in (work / "sub", outside):
        (folder / "f").write_text("old", "utf-8")
    place = Workspace(work).place("sub/f")
    assert place.inside == "sub/f"
    (work / "sub").rename(work / "was")
    (work / "sub").symlink_to(outside)
    with pytest.raises(Denied, match="changed while it was being opened"):
        way(place)
    assert [path.name for path in outside.iterdir()] == ["f"]
    assert (outside / "f").read_text("utf-8") == "old"


def test_a_file_swapped_for_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("s", "utf-8")
    work = tmp_path / "work"
    work.mkdir()
    (work / "f").write_text("f", "utf-8")
    place = Workspace(work).place("f")
    (work / "f").unlink()
    (work / "f").symlink_to(tmp_path / "secret")
    with pytest.raises(OSError, match="symbolic links"):
        disk.read(place)
    disk.replace(place, b"new", 0o644)
    assert (tmp_path / "secret").read_text("utf-8") == "s"
    assert (work / "f").read_text("utf-8") == "new"


def test_a_new_file_gets_the_usual_permissions(tmp_path: Path) -> None:
    disk.create(Workspace(tmp_path).place("new"), b"x")
    (tmp_path / "usual").write_bytes(b"x")
    assert (tmp_path / "new").stat().st_mode == (tmp_path / "usual").stat().st_mode


@pytest.mark.parametrize("nameless", [True, False])
@pytest.mark.parametrize("full", [True, False])
def test_a_write_leaves_the_old_or_the_new_and_nothing_beside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nameless: bool, full: bool
) -> None:
    (tmp_path / "f").write_text("old", "utf-8")
    (tmp_path / "f").chmod(0o640)
    if not nameless:
        monkeypatch.setattr(disk, "_nameless", lambda _folder: None)
    if full:
        monkeypatch.setattr(os, "fsync", out_of_space)
    workspace = Workspace(tmp_path)
    ways: tuple[Callable[[], None], ...] = (
        lambda: disk.replace(workspace.place("f"), b"new", 0o640),
        lambda: disk.create(workspace.place("g"), b"new"),
    )
    for way in ways:
        with pytest.raises(OSError, match="No space") if full else nullcontext():
            way()
    found = {path.name: path.read_text("utf-8") for path in tmp_path.iterdir()}
    assert found == ({"f": "old"} if full else {"f": "new", "g": "new"})
    assert (tmp_path / "f").stat().st_mode & 0o777 == 0o640


def out_of_space(_descriptor: int) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_file_has_no_name_before_it_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[list[str]] = []
    with disk.open_folder(tmp_path) as folder:
        nameless = disk._nameless(folder)
    if nameless is None:
        pytest.skip("the file system of the temporary folder has no nameless files")
    os.close(nameless)
    monkeypatch.setattr(os, "fchmod", lambda *_: seen.append([p.name for p in tmp_path.iterdir()]))
    disk.create(Workspace(tmp_path).place("f"), b"new")
    assert seen == [[]]


def test_a_file_system_without_hard_links_will_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_args: object, **_more: object) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(disk, "_nameless", lambda _folder: None)
    monkeypatch.setattr(os, "link", refuse)
    place = Workspace(tmp_path).place("f")
    disk.create(place, b"new")
    with pytest.raises(ToolFailure, match="exists already"):
        disk.create(place, b"newer")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"f": b"new"}

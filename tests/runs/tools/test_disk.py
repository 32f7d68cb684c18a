"""What was allowed is what is opened, even when a folder is swapped in between."""

from collections.abc import Callable
from pathlib import Path

import pytest

from stringd.runs.guard.errors import Denied
from stringd.runs.guard.paths import Place, Workspace
from stringd.runs.tools.files import disk

WAYS: list[Callable[[Place], object]] = [
    disk.read,
    disk.remove,
    lambda place: disk.create(place, b"new"),
    lambda place: disk.replace(place, b"new", 0o644),
]


@pytest.mark.parametrize("way", WAYS)
def test_a_folder_swapped_for_a_link_is_noticed(
    tmp_path: Path, way: Callable[[Place], object]
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

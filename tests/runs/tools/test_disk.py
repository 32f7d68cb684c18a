"""Refusals of the file door, in the words a model reads."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from stringd.runs.guard.errors import Denied
from stringd.runs.guard.workspace import Workspace, WorkspacePath
from stringd.runs.tools.files import disk
from stringd.runs.tools.output import ToolFailure

WAYS: list[Callable[[WorkspacePath], object]] = [
    disk.read,
    disk.remove,
    disk.make_parents,
    lambda place: disk.create(place, b"new"),
    lambda place: disk.replace(place, b"new", 0o644),
]


@pytest.mark.parametrize("way", WAYS)
def test_a_folder_swapped_for_a_link_is_denied(
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


@pytest.mark.parametrize(
    ("way", "name", "kind", "text"),
    [
        (disk.read, "none", "not_found", "No such file: none"),
        (disk.read, "folder", "not_found", "folder is a directory"),
        (disk.read, "pipe", "not_found", "pipe is not a regular file"),
        (WAYS[3], "f", "already_exists", "f exists already"),
        (WAYS[3], "none/f", "not_found", "The folder of none/f does not exist"),
        (WAYS[4], "f/g", "not_found", "The folder of f/g does not exist"),
        (WAYS[4], "folder", "not_found", "folder is a directory"),
    ],
)
def test_a_refusal_says_what_is_in_the_way(
    tmp_path: Path, way: Callable[[WorkspacePath], object], name: str, kind: str, text: str
) -> None:
    (tmp_path / "f").write_bytes(b"x")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ToolFailure) as failure:
        way(Workspace(tmp_path).place(name))
    assert (failure.value.problem.kind, failure.value.problem.message) == (kind, text)

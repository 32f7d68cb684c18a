"""A process that is killed while it replaces a file leaves nothing that is not cleared away."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from stringd.system.leftovers import remove_leftovers
from stringd.system.safe_open import create_file, replace_file
from stringd.system.temporary_names import is_temporary, noted, noting, temporary_name
from tests.support.daemon import WAIT_SECONDS

KILLED = """
import os, signal, sys
from pathlib import Path
from stringd.system import prepared_file, safe_open
from stringd.system.temporary_names import noting

call, way, nameless, lists, path = sys.argv[1:]
if nameless == "no":
    prepared_file._nameless = lambda folder: None
setattr(os, call, lambda *args, **more: os.kill(os.getpid(), signal.SIGKILL))
with noting(Path(lists)):
    getattr(safe_open, way)(Path(path), b"new")
"""


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    return tmp_path.resolve() / "work"


@pytest.fixture
def lists(tmp_path: Path) -> Path:
    return tmp_path / "lists"


def kill_at(call: str, way: str, lists: Path, path: Path, *, nameless: bool = True) -> None:
    """A process that writes a file and is killed when it comes to `os.<call>`."""
    command = [sys.executable, "-c", KILLED, call, way, "yes" if nameless else "no"]
    ended = subprocess.run(
        [*command, str(lists), str(path)], timeout=WAIT_SECONDS, check=False
    ).returncode
    assert ended == -signal.SIGKILL


def content(work: Path) -> dict[str, str]:
    return {path.name: path.read_text("utf-8") for path in work.iterdir()}


@pytest.mark.parametrize("nameless", [True, False])
def test_what_was_about_to_replace_a_file_is_removed(
    work: Path, lists: Path, nameless: bool
) -> None:
    (work / "f").write_text("old", "utf-8")
    kill_at("rename", "replace_file", lists, work / "f", nameless=nameless)
    (left,) = [path for path in work.iterdir() if path.name != "f"]
    assert is_temporary(left.name)
    assert remove_leftovers(lists) == [left]
    assert content(work) == {"f": "old"}
    assert list(lists.iterdir()) == []


def test_half_a_file_with_a_temporary_name_is_removed(work: Path, lists: Path) -> None:
    kill_at("fsync", "create_file", lists, work / "f", nameless=False)
    assert len(remove_leftovers(lists)) == 1
    assert content(work) == {}


@pytest.mark.parametrize("way", ["create_file", "replace_file"])
def test_a_new_file_has_no_other_name_before_its_own(
    work: Path, lists: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    try:
        os.close(os.open(work, os.O_TMPFILE | os.O_WRONLY))
    except OSError as error:
        pytest.skip(f"this file system knows no nameless files: {error}")
    kill_at("link", way, lists, work / "f")
    assert content(work) == {}
    named = list[str]()
    link = os.link

    def watched(source: str, name: str, *, src_dir_fd: int, dst_dir_fd: int) -> None:
        named.append(name)
        link(source, name, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)

    monkeypatch.setattr(os, "link", watched)
    {"create_file": create_file, "replace_file": replace_file}[way](work / "f", b"new")
    assert named == ["f"]


def test_a_file_that_somebody_made_meanwhile_is_replaced(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = os.link

    def late(source: str, name: str, *, src_dir_fd: int, dst_dir_fd: int) -> None:
        (work / "f").write_text("another one's", "utf-8")
        link(source, name, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)

    monkeypatch.setattr(os, "link", late)
    replace_file(work / "f", b"new")
    assert content(work) == {"f": "new"}


def test_what_a_living_process_has_under_way_stays(work: Path, lists: Path) -> None:
    path = work / temporary_name("f")
    with noting(lists):
        path.write_text("new", "utf-8")
        with noted(path, path.stat().st_ino):
            assert remove_leftovers(lists) == []
            assert path.exists()
    assert list(lists.iterdir()) == []


def test_only_the_very_file_that_was_noted_is_removed(work: Path, lists: Path) -> None:
    lists.mkdir()
    (work / "outside").mkdir()
    (work / "link").symlink_to("outside")
    name = temporary_name("f")
    others = [work / name, work / "outside" / name, work / "notes.md", work / ".a.12345678"]
    for path in others:
        path.write_text("mine", "utf-8")
    (work / "pipe").mkdir()
    os.mkfifo(work / "pipe" / name)
    named = [
        # Another file has the name by now.
        (others[0].stat().st_ino + 1, work / name),
        # The way to it leads through a link by now.
        (others[1].stat().st_ino, work / "link" / name),
        (None, work / "link" / name),
        # Names that we do not make up.
        (others[2].stat().st_ino, others[2]),
        (others[3].stat().st_ino, others[3]),
        (None, others[3]),
        # Not a file.
        (None, work / "pipe" / name),
        (None, work / "missing" / name),
    ]
    lines = [json.dumps([inode, str(path)]) for inode, path in named]
    damaged = [
        "",
        "null",
        "[1]",
        '["1", 2]',
        "[null, 3]",
        '[true, "/x"]',
        '[null, "a\\u0000"]',
        "{",
    ]
    # The last line was cut off where a path ended that is not the whole one.
    text = "\n".join([*lines, *damaged, json.dumps([None, str(work / name)])])
    (lists / "1-0").write_text(text, "utf-8")
    (lists / "folder").mkdir()
    assert remove_leftovers(lists) == []
    assert all(path.read_text("utf-8") == "mine" for path in others)
    assert (work / "pipe" / name).exists()
    assert [path.name for path in lists.iterdir()] == ["folder"]


def test_a_list_does_not_grow_without_end(work: Path, lists: Path) -> None:
    with noting(lists):
        (kept,) = lists.iterdir()
        for _ in range(1000):
            with noted(work / temporary_name("f" * 40), 1):
                pass
            assert kept.stat().st_size < 70_000


def test_a_directory_that_cannot_hold_a_list_stops_nobody(work: Path) -> None:
    (work / "f").write_text("old", "utf-8")
    with noting(work / "f" / "lists"):
        replace_file(work / "f", b"new")
    assert content(work) == {"f": "new"}
    assert remove_leftovers(work / "f" / "lists") == []


def test_names_that_are_not_text_are_removed_too(work: Path, lists: Path) -> None:
    path = work / os.fsdecode(b"\xff\xfe")
    path.write_text("old", "utf-8")
    kill_at("rename", "replace_file", lists, path)
    assert len(remove_leftovers(lists)) == 1
    assert content(work) == {path.name: "old"}

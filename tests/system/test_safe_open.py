"""What was judged is what is opened, even when a folder is swapped in between."""

import errno
import os
import stat
import threading
from collections.abc import Callable
from contextlib import nullcontext, suppress
from pathlib import Path

import pytest

from stringd.system import prepared_file
from stringd.system.safe_open import (
    FileTooLargeError,
    NotAFileError,
    PathChangedError,
    create_file,
    make_folders,
    open_folder,
    read_file,
    remove_file,
    replace_file,
)
from tests.support.daemon import WAIT_SECONDS

LIMIT = 1024


def listed(path: Path) -> list[str]:
    with open_folder(path.parent) as folder:
        return os.listdir(folder)  # noqa: PTH208 - by descriptor


WAYS: list[Callable[[Path], object]] = [
    lambda path: read_file(path, LIMIT),
    remove_file,
    lambda path: create_file(path, b"new"),
    lambda path: replace_file(path, b"new"),
    lambda path: make_folders(path.parent / "deeper"),
    listed,
]


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A resolved folder: the functions take nothing else."""
    return tmp_path.resolve()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("depth", ["sub", "sub/a/b"])
def test_a_folder_swapped_for_a_link_is_noticed(
    work: Path, way: Callable[[Path], object], depth: str
) -> None:
    inside, outside = work / "work", work / "outside"
    below = Path(depth).relative_to("sub")
    for folder in (inside / "sub" / below, outside / below):
        folder.mkdir(parents=True)
        (folder / "f").write_text("old", "utf-8")
    (inside / "sub").rename(inside / "was")
    (inside / "sub").symlink_to(outside)
    with pytest.raises(PathChangedError, match="symbolic links"):
        way(inside / "sub" / below / "f")
    assert [path.name for path in (outside / below).iterdir()] == ["f"]
    assert (outside / below / "f").read_text("utf-8") == "old"


def test_a_folder_that_swaps_back_and_forth_never_leads_outside(work: Path) -> None:
    inside, outside, was = work / "sub", work / "outside", work / "was"
    for folder, text in ((inside, "in"), (outside, "out")):
        folder.mkdir()
        (folder / "f").write_text(text, "utf-8")
    over = threading.Event()

    def swap() -> None:
        while not over.is_set():
            inside.rename(was)
            inside.symlink_to(outside)
            inside.unlink()
            was.rename(inside)

    swapping = threading.Thread(target=swap)
    swapping.start()
    try:
        for turn in range(1500):
            with suppress(OSError):
                assert read_file(inside / "f", LIMIT).data in (b"in", b"new")
            with suppress(OSError):
                replace_file(inside / "f", b"new")
            with suppress(OSError):
                create_file(inside / f"g{turn}", b"g")
    finally:
        over.set()
        swapping.join(WAIT_SECONDS)
    assert [path.name for path in outside.iterdir()] == ["f"]
    assert (outside / "f").read_text("utf-8") == "out"


def test_a_file_swapped_for_a_link_is_not_followed(work: Path) -> None:
    (work / "secret").write_text("s", "utf-8")
    (work / "f").symlink_to(work / "secret")
    with pytest.raises(PathChangedError, match="symbolic links"):
        read_file(work / "f", LIMIT)
    with pytest.raises(FileExistsError):
        create_file(work / "f", b"new")
    replace_file(work / "f", b"new")
    assert (work / "secret").read_text("utf-8") == "s"
    assert (work / "f").read_text("utf-8") == "new"


def test_a_file_is_reached_through_folders_that_cannot_be_listed(work: Path) -> None:
    (work / "a").mkdir()
    (work / "a" / "f").write_bytes(b"x")
    (work / "a").chmod(0o311)
    try:
        assert read_file(work / "a" / "f", LIMIT).data == b"x"
    finally:
        (work / "a").chmod(0o700)


def test_without_the_proc_file_system_every_step_is_taken(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(_path: object) -> str:
        raise FileNotFoundError

    monkeypatch.setattr(os, "readlink", gone)
    make_folders(work / "a" / "b")
    create_file(work / "a" / "b" / "f", b"x")
    assert read_file(work / "a" / "b" / "f", LIMIT).data == b"x"


def test_what_is_not_a_regular_file_is_refused_and_never_waited_for(work: Path) -> None:
    os.mkfifo(work / "pipe")
    (work / "folder").mkdir()
    for name, is_directory in (("pipe", False), ("folder", True)):
        for way in (lambda path: read_file(path, LIMIT), lambda path: replace_file(path, b"x")):
            with pytest.raises(NotAFileError) as refused:
                way(work / name)
            assert refused.value.is_directory is is_directory
    assert stat.S_ISFIFO((work / "pipe").stat().st_mode)
    with pytest.raises(NotAFileError):
        read_file(Path("/dev/zero"), LIMIT)
    with pytest.raises(NotAFileError):
        read_file(Path("/"), LIMIT)


def test_a_file_above_the_limit_is_refused_with_its_size(work: Path) -> None:
    (work / "f").write_bytes(b"x" * (LIMIT + 1))
    with pytest.raises(FileTooLargeError) as refused:
        read_file(work / "f", LIMIT)
    assert refused.value.size == LIMIT + 1
    assert len(read_file(work / "f", LIMIT + 1).data) == LIMIT + 1


def test_a_file_without_a_size_is_read_up_to_the_limit() -> None:
    status = Path("/proc/self/status").resolve()
    assert read_file(status, 1024 * 1024).data.startswith(b"Name:")
    with pytest.raises(FileTooLargeError):
        read_file(status, 10)


@pytest.mark.parametrize("name", ["none", "none/f", "f/g"])
def test_what_is_missing_is_named(work: Path, name: str) -> None:
    (work / "f").write_bytes(b"x")
    with pytest.raises((FileNotFoundError, NotADirectoryError)) as missing:
        read_file(work / name, LIMIT)
    assert str(missing.value.filename).startswith(str(work))


def test_a_new_file_gets_the_usual_permissions(work: Path) -> None:
    create_file(work / "new", b"x")
    replace_file(work / "put", b"x")
    make_folders(work / "a" / "b")
    (work / "usual").write_bytes(b"x")
    (work / "folder").mkdir()
    for made, usual in (("new", "usual"), ("put", "usual"), ("a", "folder"), ("a/b", "folder")):
        assert (work / made).stat().st_mode == (work / usual).stat().st_mode


def test_a_replaced_file_keeps_its_permissions(work: Path) -> None:
    (work / "f").write_bytes(b"old")
    (work / "f").chmod(0o750)
    replace_file(work / "f", b"new")
    assert read_file(work / "f", LIMIT) == (b"new", 0o750)
    replace_file(work / "f", b"newer", 0o600)
    assert read_file(work / "f", LIMIT) == (b"newer", 0o600)


def test_a_read_only_file_is_left_alone(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (work / "f").write_bytes(b"old")
    (work / "f").chmod(0o444)
    if os.geteuid() == 0:
        # To root every file is writable; what others are told must still hold.
        monkeypatch.setattr(os, "access", lambda *_, **__: False)
    with pytest.raises(PermissionError):
        replace_file(work / "f", b"new")
    assert read_file(work / "f", LIMIT).data == b"old"
    replace_file(work / "f", b"new", even_read_only=True)
    assert read_file(work / "f", LIMIT) == (b"new", 0o444)


def test_a_file_in_the_way_of_a_folder_is_named_as_one(work: Path) -> None:
    (work / "f").write_bytes(b"x")
    with pytest.raises(NotADirectoryError, match="Not a directory"):
        make_folders(work / "f" / "g")


@pytest.mark.parametrize("nameless", [True, False])
@pytest.mark.parametrize("full", [True, False])
def test_a_write_leaves_the_old_or_the_new_and_nothing_beside(
    work: Path, monkeypatch: pytest.MonkeyPatch, nameless: bool, full: bool
) -> None:
    (work / "f").write_text("old", "utf-8")
    (work / "f").chmod(0o640)
    if not nameless:
        monkeypatch.setattr(prepared_file, "_nameless", lambda _folder: None)
    if full:
        monkeypatch.setattr(os, "fsync", out_of_space)
    ways: tuple[Callable[[], None], ...] = (
        lambda: replace_file(work / "f", b"new", 0o640),
        lambda: create_file(work / "g", b"new"),
    )
    for way in ways:
        with pytest.raises(OSError, match="No space") if full else nullcontext():
            way()
    found = {path.name: path.read_text("utf-8") for path in work.iterdir()}
    assert found == ({"f": "old"} if full else {"f": "new", "g": "new"})
    assert (work / "f").stat().st_mode & 0o777 == 0o640


def out_of_space(_descriptor: int) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_file_has_no_name_before_it_is_whole(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[list[str]] = []
    with open_folder(work) as folder:
        nameless = prepared_file._nameless(folder)
    if nameless is None:
        pytest.skip("the file system of the temporary folder has no nameless files")
    os.close(nameless)
    monkeypatch.setattr(os, "fchmod", lambda *_: seen.append([p.name for p in work.iterdir()]))
    create_file(work / "f", b"new")
    assert seen == [[]]


def test_a_file_system_without_hard_links_will_do(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_args: object, **_more: object) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(prepared_file, "_nameless", lambda _folder: None)
    monkeypatch.setattr(os, "link", refuse)
    create_file(work / "f", b"new")
    with pytest.raises(FileExistsError):
        create_file(work / "f", b"newer")
    assert {path.name: path.read_bytes() for path in work.iterdir()} == {"f": b"new"}


def test_no_descriptor_stays_open(work: Path) -> None:
    def count() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    before = count()
    (work / "link").symlink_to(work)
    for way in WAYS:
        for path in (work / "f", work / "link" / "f", work / "none" / "f", work / "f" / "g"):
            with suppress(OSError):
                way(path)
    assert count() == before

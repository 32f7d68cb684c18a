"""Files that are either the old text or the new one."""

import errno
import os
import signal
import stat
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from stringd.system.files import make_private_directory, write_atomically
from tests.support.daemon import WAIT_SECONDS


def test_a_file_is_replaced_with_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "file"
    for text in (b"one", b"two"):
        write_atomically(path, text, 0o600)
        assert path.read_bytes() == text
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert os.listdir(tmp_path) == ["file"]  # noqa: PTH208 - names are all we want


def test_a_file_keeps_its_owner_and_group(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    try:
        os.chown(path, 1234, 5678)
    except PermissionError:
        pytest.skip("only root may give files away")
    write_atomically(path, b"new", 0o640)
    status = path.stat()
    assert (status.st_uid, status.st_gid, stat.S_IMODE(status.st_mode)) == (1234, 5678, 0o640)


def test_a_file_keeps_its_access_list_and_its_marks(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    # Version 2: owner rw, user 1234 rw, group r, mask rw, others none.
    entries = [(1, 6, 2**32 - 1), (2, 6, 1234), (4, 4, 2**32 - 1), (16, 6, 2**32 - 1)]
    entries.append((32, 0, 2**32 - 1))
    access = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)
    try:
        os.setxattr(path, "user.origin", b"here")
        os.setxattr(path, "system.posix_acl_access", access)
    except OSError:
        pytest.skip("this file system keeps no attributes")
    write_atomically(path, b"new", stat.S_IMODE(path.stat().st_mode))
    assert path.read_bytes() == b"new"
    assert os.getxattr(path, "user.origin") == b"here"
    assert os.getxattr(path, "system.posix_acl_access") == access


def test_a_failed_write_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    write_atomically(path, b"old", 0o600)

    def full_disk(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(OSError, match="No space left"):
        write_atomically(path, b"new", 0o600)
    assert path.read_bytes() == b"old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


_KILLED_WHILE_SYNCING = """
import os, signal, sys
from pathlib import Path
from stringd.system.files import write_atomically

os.fsync = lambda descriptor: os.kill(os.getpid(), signal.SIGKILL)
write_atomically(Path(sys.argv[1]), b"new" * 100_000, 0o600)
"""


def test_a_crash_while_writing_leaves_nothing_behind(tmp_path: Path) -> None:
    try:
        os.close(os.open(tmp_path, os.O_TMPFILE | os.O_WRONLY))
    except OSError as error:
        pytest.skip(f"this file system knows no nameless files: {error}")
    path = tmp_path / "file"
    path.write_bytes(b"old")
    command = [sys.executable, "-c", _KILLED_WHILE_SYNCING, str(path)]
    assert subprocess.run(command, timeout=WAIT_SECONDS, check=False).returncode == -signal.SIGKILL
    assert path.read_bytes() == b"old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("number", [errno.EOPNOTSUPP, errno.EISDIR])
def test_a_file_system_without_nameless_files_is_written_to_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    opened = os.open

    def no_nameless_files(
        path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None
    ) -> int:
        if flags & os.O_TMPFILE == os.O_TMPFILE:
            raise OSError(number, os.strerror(number))
        return opened(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", no_nameless_files)
    path = tmp_path / "file"
    for text in (b"one", b"two"):
        write_atomically(path, text, 0o640)
        assert path.read_bytes() == text
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_links_on_the_way_are_followed_and_one_that_is_the_file_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "linked").symlink_to("real")
    write_atomically(tmp_path / "linked" / "file", b"text", 0o600)
    assert (tmp_path / "real" / "file").read_bytes() == b"text"
    (tmp_path / "link").symlink_to("real/file")
    write_atomically(tmp_path / "link", b"other", 0o600)
    assert (tmp_path / "real" / "file").read_bytes() == b"text"
    assert (tmp_path / "link").read_bytes() == b"other"


def test_a_long_name_still_fits(tmp_path: Path) -> None:
    path = tmp_path / ("x" * 250)
    write_atomically(path, b"text", 0o644)
    assert path.read_bytes() == b"text"


def test_a_private_directory_is_made_with_its_parents(tmp_path: Path) -> None:
    make_private_directory(tmp_path / "a" / "b")
    make_private_directory(tmp_path / "a" / "b")
    for path in (tmp_path / "a", tmp_path / "a" / "b"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700

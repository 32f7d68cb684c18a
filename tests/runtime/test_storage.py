"""Files that are either the old text or the new one."""

import os
import stat
from pathlib import Path

import pytest

from stringd.runtime.storage import make_private_directory, write_atomically


def test_a_file_is_replaced_with_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "file"
    for text in (b"one", b"two"):
        write_atomically(path, text, 0o600)
        assert path.read_bytes() == text
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert os.listdir(tmp_path) == ["file"]  # noqa: PTH208 - names are all we want


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


def test_a_long_name_still_fits(tmp_path: Path) -> None:
    path = tmp_path / ("x" * 250)
    write_atomically(path, b"text", 0o644)
    assert path.read_bytes() == b"text"


def test_a_private_directory_is_made_with_its_parents(tmp_path: Path) -> None:
    make_private_directory(tmp_path / "a" / "b")
    make_private_directory(tmp_path / "a" / "b")
    assert stat.S_IMODE((tmp_path / "a" / "b").stat().st_mode) == 0o700

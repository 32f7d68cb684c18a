import os
from hashlib import sha256
from pathlib import Path

import pytest

from stringd.gate import sealed
from tests.requirements import proves


@proves("GATE-EXE-08")
def test_a_sealed_copy_can_be_read_and_never_written(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes(b"#!/bin/sh\n" * 200_000)
    file = os.open(path, os.O_RDONLY)
    copy = sealed.copy(file)
    try:
        assert sealed.digest(copy) == sealed.digest(file) == sha256(path.read_bytes()).hexdigest()
        with pytest.raises(PermissionError):
            os.pwrite(copy, b"x", 0)
        with pytest.raises(PermissionError):
            os.ftruncate(copy, 0)
        # Opened once more it cannot be written to either.
        again = os.open(f"/proc/self/fd/{copy}", os.O_RDWR)
        with pytest.raises(PermissionError):
            os.write(again, b"x")
        os.close(again)
    finally:
        os.close(file)
        os.close(copy)


def test_a_lease_holds_up_writers_until_it_ends(tmp_path: Path) -> None:
    path = tmp_path / "tool"
    path.touch()
    file = os.open(path, os.O_RDONLY)
    try:
        assert sealed.lease(file)
        with pytest.raises(BlockingIOError):
            os.open(path, os.O_WRONLY | os.O_NONBLOCK)
        sealed.end_lease(file)
        os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
    finally:
        os.close(file)


def test_a_file_that_is_open_for_writing_gets_no_lease(tmp_path: Path) -> None:
    path = tmp_path / "tool"
    with path.open("w"):
        file = os.open(path, os.O_RDONLY)
        assert not sealed.lease(file)
        os.close(file)

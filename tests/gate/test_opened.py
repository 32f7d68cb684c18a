"""The kernel's word on whether a program was started."""

import shutil
import subprocess
from pathlib import Path

import pytest

from stringd.gate.opened import OpenedWatch


@pytest.fixture
def program(tmp_path: Path) -> Path:
    return Path(shutil.copy("/usr/bin/true", tmp_path / "program"))


def test_a_program_that_was_started_was_opened(program: Path) -> None:
    watch = OpenedWatch(str(program))
    subprocess.run([program], check=True)
    assert watch.was_opened()
    watch.close()


def test_looking_at_a_program_does_not_open_it(program: Path) -> None:
    watch = OpenedWatch(str(program))
    program.stat()
    assert not watch.was_opened()
    watch.close()


def test_what_cannot_be_watched_counts_as_opened(tmp_path: Path) -> None:
    assert OpenedWatch(str(tmp_path / "missing")).was_opened()

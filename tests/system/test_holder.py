"""Who uses a data directory: a lock that ends with its process, and how to reach it."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from stringd.system.holder import hold, holder
from tests.support.daemon import WAIT_SECONDS

HOLDING = """\
import sys
from stringd.system.holder import hold
found = hold(sys.argv[1], 4711, "1.2.3")
print("mine" if found is None else f"{found.pid} {found.port} {found.version}", flush=True)
sys.stdin.read()
"""


@contextmanager
def holding(directory: Path) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    """Another process that holds a directory until we let it end, and what it found."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLDING, str(directory)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        yield process, process.stdout.readline().strip()
        process.communicate(timeout=WAIT_SECONDS)


def test_nobody_holds_a_directory_that_was_never_used(tmp_path: Path) -> None:
    assert holder(tmp_path) is None
    assert holder(tmp_path / "none") is None


def test_a_holder_is_found_until_it_ends(tmp_path: Path) -> None:
    with holding(tmp_path) as (process, said):
        assert said == "mine"
        found = holder(tmp_path)
        assert found is not None
        assert (found.pid, found.port, found.version) == (process.pid, 4711, "1.2.3")
    assert holder(tmp_path) is None


def test_one_that_was_killed_is_not_believed_to_be_there(tmp_path: Path) -> None:
    with holding(tmp_path) as (process, _):
        process.kill()
        process.wait(WAIT_SECONDS)
        assert holder(tmp_path) is None


def test_a_second_one_learns_of_the_first(tmp_path: Path) -> None:
    with holding(tmp_path) as (first, _), holding(tmp_path) as (_, said):
        assert said == f"{first.pid} 4711 1.2.3"
        found = holder(tmp_path)
        assert found is not None
        assert found.pid == first.pid


def test_it_is_looked_for_without_taking_it(tmp_path: Path) -> None:
    with holding(tmp_path):
        pass
    assert holder(tmp_path) is None
    with holding(tmp_path) as (_, said):
        assert said == "mine"


@pytest.mark.parametrize("content", [b"", b"x", b"-1 2 3", b"12", b"12 x 3", bytes(range(256))])
def test_a_file_that_says_nothing_is_nobody(tmp_path: Path, content: bytes) -> None:
    with holding(tmp_path):
        (tmp_path / "daemon.pid").write_bytes(content)
        assert holder(tmp_path) is None
        assert hold(tmp_path, 1, "0") is None


def test_it_tells_others_nothing(tmp_path: Path) -> None:
    with holding(tmp_path):
        assert os.stat(tmp_path / "daemon.pid").st_mode & 0o777 == 0o600  # noqa: PTH116

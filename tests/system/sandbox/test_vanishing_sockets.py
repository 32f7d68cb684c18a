"""A socket may go away with its server while the walls that would hide it are being made."""

import subprocess
from collections.abc import Iterator

import pytest

from stringd.system.sandbox import Bubblewrap
from tests.support.daemon import WAIT_SECONDS
from tests.system.sandbox.cage import Cage, Kind, cage, listening


@pytest.fixture
def wrapped() -> Iterator[Cage]:
    with cage(Kind("bubblewrap", "self")) as found:
        if isinstance(found, str):
            pytest.skip(found)
        with listening(found.outside / "vanishing.sock"):
            yield found


def _replace_bubblewrap(wrapped: Cage, script: str) -> None:
    """Start a script in place of bubblewrap, which counts its starts."""
    assert isinstance(wrapped.walls, Bubblewrap)
    program = wrapped.base / "bwrap"
    program.write_text(f"#!/bin/sh\necho start >>{wrapped.base}/starts\n{script}\n")
    program.chmod(0o755)
    wrapped.walls = wrapped.walls._replace(program=str(program))


def test_the_command_runs_all_the_same(wrapped: Cage) -> None:
    real = wrapped.walls.program if isinstance(wrapped.walls, Bubblewrap) else ""
    _replace_bubblewrap(wrapped, f'rm -f {wrapped.outside}/vanishing.sock\nexec {real} "$@"')
    assert wrapped.run("echo out; echo err >&2; exit 3") == (3, "out\nerr\n")
    assert (wrapped.base / "starts").read_text() == "start\nstart\n"


def test_another_failure_is_said_once(wrapped: Cage) -> None:
    _replace_bubblewrap(wrapped, "echo bwrap: no luck >&2\nexit 1")
    process = wrapped.start(wrapped.enclosed(["/bin/true"]), stderr=subprocess.PIPE)
    _, said = process.communicate(timeout=WAIT_SECONDS)
    assert (process.returncode, said) == (1, b"bwrap: no luck\n")
    assert (wrapped.base / "starts").read_text() == "start\n"

"""Gates for the tests of this room."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.gate.support import Desk, Human, RunningGate, running_gate, serving


@pytest.fixture
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with a short name, for sockets; the process is put back where it was afterwards.

    An executor moves its process to `/` with umask 077, which is the gate's business, not pytest's.
    """
    where, umask = Path.cwd(), os.umask(0o077)
    os.umask(umask)
    yield tmp_path_factory.mktemp("g")
    os.chdir(where)
    os.umask(umask)


@pytest.fixture
def gate(home: Path) -> Iterator[RunningGate]:
    """The real program on a terminal, ready for keys at once."""
    with running_gate(home) as running:
        yield running


@pytest.fixture
def desk(home: Path) -> Iterator[Desk]:
    """A server whose human says yes to everything."""
    with serving(home, Human()) as served:
        yield served

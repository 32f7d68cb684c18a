import os
import socket
import stat
from pathlib import Path

import pytest

from stringd.gate.errors import TroubleError
from stringd.gate.listener import Listener
from tests.requirements import proves


@pytest.fixture
def path(home: Path) -> Path:
    return home / "gate.sock"


@proves("GATE-SOCK-01")
def test_the_socket_is_private_whatever_the_umask(path: Path) -> None:
    before = os.umask(0)
    try:
        listener = Listener(path)
        assert os.umask(0) == 0
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.lstat().st_mode) == 0o600
    listener.close()
    assert not path.exists()


@proves("GATE-SOCK-01")
def test_a_living_gate_keeps_its_socket(path: Path) -> None:
    first = Listener(path)
    with pytest.raises(TroubleError, match=f"stringd gate is already running on {path}"):
        Listener(path)
    with socket.socket(socket.AF_UNIX) as probe:
        probe.connect(str(path))
    first.close()


@proves("GATE-SOCK-01")
def test_a_dead_gates_socket_is_taken_over(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    Listener(path).close()


def test_our_own_leftover_file_is_replaced(path: Path) -> None:
    path.write_text("left over")
    Listener(path).close()


@pytest.mark.parametrize("target", ["precious", "gone"])
def test_a_symbolic_link_is_never_followed_or_removed(path: Path, target: str) -> None:
    (path.parent / "precious").write_text("data")
    path.symlink_to(path.parent / target)
    with pytest.raises(TroubleError):
        Listener(path)
    assert path.is_symlink()
    assert (path.parent / "precious").read_text() == "data"


def test_a_socket_that_is_no_longer_ours_is_left_alone(path: Path) -> None:
    listener = Listener(path)
    path.unlink()
    path.write_text("somebody else's")
    listener.close()
    assert path.exists()


@pytest.mark.parametrize("name", ["missing/gate.sock", "x" * 200])
def test_a_path_that_cannot_be_bound_says_so(home: Path, name: str) -> None:
    with pytest.raises(TroubleError, match="cannot listen on"):
        Listener(home / name)

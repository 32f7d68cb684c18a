import fcntl
import os
import socket
import stat
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from stringd.gate import listener as listener_module
from stringd.gate.errors import TroubleError
from stringd.gate.listener import LOCK_PAUSE, Listener
from tests.gate.support import PATIENCE
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
    listener = Listener(path)
    with socket.socket(socket.AF_UNIX) as caller:
        caller.connect(str(path))
        accepted, _ = listener.socket.accept()
        accepted.close()
    assert stat.S_IMODE(path.lstat().st_mode) == 0o600
    listener.close()
    assert not path.exists()


def test_our_own_leftover_file_is_replaced(path: Path) -> None:
    path.write_text("left over")
    listener = Listener(path)
    assert path.is_socket()
    listener.close()
    assert not path.exists()


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


@proves("GATE-SOCK-01")
def test_two_gates_that_find_a_dead_socket_do_not_take_each_others(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    looked, second_moved = threading.Event(), threading.Event()
    answers = listener_module._answers

    def hesitate(where: Path) -> bool:
        found = answers(where)
        if threading.current_thread() is first:
            looked.set()
            # What it has seen gets old unless the second has to wait for it.
            assert second_moved.wait(PATIENCE)
        return found

    def pause(seconds: float) -> None:
        second_moved.set()
        time.sleep(seconds)

    def second() -> None:
        try:
            Listener(path).close()
        finally:
            second_moved.set()

    monkeypatch.setattr(listener_module, "_answers", hesitate)
    monkeypatch.setattr(listener_module, "time", SimpleNamespace(sleep=pause))
    monkeypatch.setattr(listener_module, "LOCK_ATTEMPTS", int(PATIENCE / LOCK_PAUSE))
    made: list[Listener] = []
    first = threading.Thread(target=lambda: made.append(Listener(path)))
    first.start()
    assert looked.wait(PATIENCE)
    with pytest.raises(TroubleError, match="already running"):
        second()
    first.join(PATIENCE)
    with socket.socket(socket.AF_UNIX) as probe:
        probe.connect(str(path))
    made[0].close()


def test_a_folder_somebody_keeps_locked_is_reported(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener_module, "LOCK_ATTEMPTS", 2)
    holder = os.open(path.parent, os.O_RDONLY)
    try:
        fcntl.flock(holder, fcntl.LOCK_EX)
        with pytest.raises(TroubleError, match="another gate is starting"):
            Listener(path)
    finally:
        os.close(holder)
    assert not path.exists()


def test_a_start_that_fails_leaves_no_socket(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_self: Path, _mode: int) -> None:
        raise PermissionError(1, "no")

    monkeypatch.setattr(Path, "chmod", refuse)
    with pytest.raises(TroubleError, match=f"cannot listen on {path}"):
        Listener(path)
    assert not path.exists()

"""A gate beside the person: a pane of a real tmux, a window, or the line to type."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from stringd.gate.open_terminal import ways

COMMAND = ["/bin/stringd", "gate", "--socket", "/a b/'$(id)'"]


def found(*names: str) -> dict[str, str]:
    return {name: f"/usr/bin/{name}" for name in names}


def test_tmux_comes_first_and_gets_the_words_as_they_are() -> None:
    env = {"TMUX": "/tmp/tmux,1,0", "DISPLAY": ":0", "STRINGD_DATA_DIR": "/d"}
    first, second = ways(COMMAND, env, found("tmux", "xterm").get)
    assert first == [
        *["/usr/bin/tmux", "split-window", "-e", "STRINGD_DATA_DIR=/d", "--"],
        *COMMAND,
    ]
    assert second == ["/usr/bin/xterm", "-e", *COMMAND]


def test_the_persons_own_choice_comes_before_other_windows() -> None:
    env = {"WAYLAND_DISPLAY": "wayland-0", "TERMINAL": "foot"}
    programs = [words[:2] for words in ways(COMMAND, env, found("foot", "gnome-terminal").get)]
    assert programs == [["/usr/bin/foot", COMMAND[0]], ["/usr/bin/gnome-terminal", "--"]]


def test_without_a_screen_there_is_no_way() -> None:
    assert list(ways(COMMAND, {"TERMINAL": "xterm"}, found("xterm", "tmux").get)) == []


def gate(socket: Path, env: dict[str, str]) -> "subprocess.CompletedProcess[str]":
    words = [sys.executable, "-m", "stringd", "gate", "--open", "--no-bell", "--socket"]
    return subprocess.run(
        [*words, str(socket)], env=env, capture_output=True, text=True, check=False
    )


def test_without_a_terminal_the_line_is_said(tmp_path: Path) -> None:
    unwanted = ("TMUX", "DISPLAY", "WAYLAND_DISPLAY")
    env = {name: value for name, value in os.environ.items() if name not in unwanted}
    done = gate(tmp_path / "gate.sock", env)
    assert done.returncode == 1
    assert f"stringd gate --socket {tmp_path / 'gate.sock'}" in done.stderr


@pytest.fixture
def tmux(home: Path) -> Iterator[dict[str, str]]:
    """A tmux of its own, as the environment of somebody in it."""
    if shutil.which("tmux") is None:
        pytest.skip("tmux is not installed")
    env = {**os.environ, "TERM": "xterm", "STRINGD_DATA_DIR": str(home / "data")}
    env.pop("TMUX", None)
    call = ["tmux", "-S", str(home / "t"), "-f", "/dev/null"]
    subprocess.run([*call, "new-session", "-d", "-x", "100", "-y", "40"], env=env, check=True)
    try:
        yield env | {"TMUX": f"{home / 't'},1,0"}
    finally:
        subprocess.run([*call, "kill-server"], check=True)


def test_a_gate_opens_in_a_pane_of_tmux(home: Path, tmux: dict[str, str]) -> None:
    socket = home / "gate.sock"
    done = gate(socket, tmux)
    assert done.returncode == 0, done.stderr
    assert "runs in a new terminal" in done.stdout
    assert "already running" in gate(socket, tmux).stdout
    panes = subprocess.run(
        ["tmux", "-S", str(home / "t"), "list-panes"], capture_output=True, text=True, check=True
    )
    assert len(panes.stdout.splitlines()) == 2
    stop = [sys.executable, "-m", "stringd", "request", "--socket", str(socket), "--stop"]
    subprocess.run(stop, check=True, capture_output=True)

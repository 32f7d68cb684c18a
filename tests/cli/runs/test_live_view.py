"""The live view on a real terminal: its size changes, its daemon ends, keys answer."""

import fcntl
import os
import re
import select
import struct
import termios
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.cli.runs.test_run import Terminal, tool_user, write
from tests.gate.screen import Screen
from tests.runs.support import scripted, sequential, strategy
from tests.support.daemon import WAIT_SECONDS, Daemon


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with Daemon(tmp_path_factory.mktemp("view")) as running:
        yield running


class Watcher(Terminal):
    """A terminal with a size, and what is on its screen."""

    def __init__(self, daemon: Daemon, rows: int, columns: int, *args: str) -> None:
        super().__init__(daemon, *args)
        self.resize(rows, columns)

    def resize(self, rows: int, columns: int) -> None:
        self.screen = Screen(rows, columns)
        size = struct.pack("HHHH", rows, columns, 0, 0)
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, size)

    def sees(self, *texts: str) -> str:
        """Wait until all of it is on the screen at once."""
        while not all(text in self.screen.text for text in texts):
            ready, _, _ = select.select([self._master], [], [], WAIT_SECONDS)
            assert ready, f"never shown: {texts} in\n{self.screen.text}"
            self._take()
        return self.screen.text

    def _take(self) -> None:
        said = os.read(self._master, 65536).decode("utf-8", "replace")
        self.shown += said
        # A picture of another size begins with a clear screen.
        self.screen.feed(said)

    def ended(self) -> int:
        with suppress(OSError):
            while True:
                self._take()
        return super().ended()


def test_a_question_is_seen_at_every_size_and_nothing_is_left_of_the_last_one(
    daemon: Daemon,
) -> None:
    names = [f"agent{n:02}" for n in range(1, 31)]
    agents = {name: scripted(f"{name} is done") for name in names}
    agents["agent15"] = tool_user("read_file", path="/etc/hostname")
    source = strategy(sequential(*names), **agents)
    path = write(daemon, "thirty.yaml", source)
    view = Watcher(daemon, 24, 80, "run", path, "--run-id", "thirty", "-i", "go")
    view.sees("wants to read /etc/hostname", "1 once", "⚙ read_file", "13 done")
    for rows, columns in ((10, 40), (40, 120), (24, 80)):
        view.resize(rows, columns)
        shown = view.sees("agent15 wants to read", "1 once", "in ·")
        assert shown.count("1 once") == 1
        assert len(view.screen.lines) == rows
    view.type("3")
    view.sees("› no")
    view.type("read the copy\r")
    assert view.ended() == 0
    kept = (daemon.data_dir / "runs" / "thirty.jsonl").read_text("utf-8")
    assert '"reason":"read the copy"' in kept
    assert view.shown.rpartition("\x1b[?1049l")[2].count("agent30 is done") == 1


def test_one_key_allows_what_could_be_read(daemon: Daemon) -> None:
    source = strategy(sequential("a"), a=tool_user("read_file", path="/etc/hostname"))
    path = write(daemon, "once.yaml", source)
    view = Watcher(daemon, 24, 80, "run", path, "--run-id", "once", "-i", "go")
    view.sees("wants to read /etc/hostname")
    with suppress(OSError):
        # A key that comes too soon is said to be so, and pressed again.
        while view.child.poll() is None and "✓ read_file" not in view.screen.text:
            view.type("1")
            view._take()
    assert view.ended() == 0
    kept = (daemon.data_dir / "runs" / "once.jsonl").read_text("utf-8")
    assert '"decision":"allow"' in kept


def test_a_late_view_is_the_same_as_an_early_one(daemon: Daemon) -> None:
    steps = {
        "a": scripted({"thinking": "hm", "text": "**the** draft"}),
        "b": tool_user("ask_question", question="Which?"),
    }
    path = write(daemon, "late.yaml", strategy(sequential("a", "b"), **steps))
    early = Watcher(daemon, 24, 80, "run", path, "--run-id", "same", "-i", "go")
    told = ("the draft", "b asks: Which?", "thought: 1 word", "✓ a")
    first = early.sees(*told)
    late = Watcher(daemon, 24, 80, "runs", "resume", "same")
    second = late.sees(*told)
    assert _still(second) == _still(first)
    late.type("fine\r")
    assert (late.ended(), early.ended()) == (0, 0)


def _still(shown: str) -> list[str]:
    """A screen without what turns and the times that pass."""
    lines = shown.splitlines()[1:]
    return [re.sub(r"[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏](.*?)( · [\d.]+ s)?$", r"\1", line) for line in lines]


def test_a_view_whose_daemon_comes_back_continues(tmp_path: Path) -> None:
    with Daemon(tmp_path) as mortal:
        source = strategy(sequential("a"), a=scripted("the draft"))
        source["flow"]["steps"].append({"approve": "Good?", "name": "check"})
        path = write(mortal, "back.yaml", source)
        view = Watcher(mortal, 24, 80, "run", path, "--run-id", "back", "-i", "go")
        view.sees("the draft", "check asks: Good?")
        mortal.kill()
        shown = view.sees("waiting 60 s", "? check")
        assert not set("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏") & set(shown)
        mortal.start()
        assert view.sees("check asks: Good?").count("✓ a  demo") == 1
        view.type("yes\r")
        assert view.ended() == 0

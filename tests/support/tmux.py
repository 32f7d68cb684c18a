"""A program on the screen of a real terminal: a tmux of its own."""

import os
import select
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.daemon import WAIT_SECONDS


class Pane:
    """What a person sees and types. `until()` looks again whenever the program has printed."""

    def __init__(self, call: Sequence[str], printed: int) -> None:
        self._call = call
        self._printed = printed

    def tmux(self, *words: str) -> str:
        done = subprocess.run(
            [*self._call, *words], capture_output=True, check=True, timeout=WAIT_SECONDS
        )
        return done.stdout.decode()

    def type(self, text: str) -> None:
        self.tmux("send-keys", "-l", "--", text)

    def press(self, *keys: str) -> None:
        """Keys by the names tmux has for them."""
        self.tmux("send-keys", *keys)

    @property
    def lines(self) -> list[str]:
        return [line.rstrip() for line in self.tmux("capture-pane", "-p").splitlines()]

    @property
    def text(self) -> str:
        return "\n".join(self.lines).rstrip()

    def until(self, *texts: str) -> str:
        """The screen, once it shows every text."""
        while not all(text in (shown := self.text) for text in texts):
            ready, _, _ = select.select([self._printed], [], [], WAIT_SECONDS)
            assert ready, f"none came of {texts} on:\n{shown}"
            assert os.read(self._printed, 65536), f"the program ended:\n{shown}"
        return shown


@contextmanager
def pane(
    folder: Path, argv: Sequence[str], env: Mapping[str, str], size: tuple[int, int] = (80, 24)
) -> Iterator[Pane]:
    """A program in a terminal of so many columns and rows; the screen remains when it ends."""
    if shutil.which("tmux") is None:
        pytest.skip("tmux is not installed")
    call = ["tmux", "-S", str(folder / "t"), "-f", "/dev/null"]
    outer = {name: value for name, value in env.items() if name not in ("TMUX", "TERM")}
    pipe = folder / "printed"
    os.mkfifo(pipe)
    columns, rows = map(str, size)
    # The program starts once its output is watched, so nothing that it prints is missed.
    waits = ["sh", "-c", 'read -r _ && clear && exec "$@"', "sh", *argv]
    begin = ["new-session", "-d", "-x", columns, "-y", rows, "--", *waits]
    options = ["set-option", "-g", "remain-on-exit", "on", ";"]
    subprocess.run(
        [*call, *options, *begin],
        env=outer | {"TERM": "xterm", "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8"},
        check=True,
        timeout=WAIT_SECONDS,
    )
    printed = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        subprocess.run([*call, "pipe-pane", f"cat > '{pipe}'"], check=True)
        shown = Pane(call, printed)
        shown.press("Enter")
        yield shown
    finally:
        subprocess.run([*call, "kill-server"], check=True)
        os.close(printed)

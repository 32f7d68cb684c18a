"""`python docs/picture.py [file.svg]`: the picture in the README, taken of the real thing.

Three terminals are run in tmux: an agent's shell, a run, and the gate that is asked. What they
show is drawn as it is, with nothing added but the titles. Nobody answers the gate, so what it
is asked for never runs. Needs tmux, and the `tui` extra for the run.
"""

import re
import shlex
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from html import escape
from pathlib import Path
from typing import Final, NamedTuple

from stringd.client.daemon import stop

DOCS: Final = Path(__file__).parent
STRATEGY: Final = DOCS.parent / "examples" / "strategies" / "research-with-critic.yaml"
WAIT_SECONDS: Final = 30
PAGE: Final = """\
# Find what fills the logs

1. Search `/var/log` with ripgrep.
2. Write the three worst to [findings](findings.md).
"""

CELL_WIDTH, CELL_HEIGHT, TITLE_HEIGHT, PADDING, GAP = 8, 18, 22, 14, 12
BACKGROUND, TITLE, PLAIN, DIM = "#1f2430", "#e5c07b", "#d5dbe6", "#7f8a9e"
COLOURS: Final = {
    31: "#e88388",
    32: "#a3be8c",
    33: "#e5c07b",
    34: "#81a1c1",
    35: "#c8a2d4",
    36: "#88c0d0",
}


class Terminal(NamedTuple):
    """A terminal of the picture: where it is, how large it is, and what happens in it."""

    name: str
    title: str
    columns: int
    rows: int
    left: int
    top: int
    typed: tuple[tuple[str, str], ...]
    """Lines to type, and the text to wait for after each."""


GATE: Final = Terminal(
    "gate",
    "you, at the gate",
    *(125, 14, 0, 20),
    (("stringd gate", "Questions appear here"),),
)
RUN: Final = Terminal(
    "run",
    "a run of two agents",
    *(60, 20, 60, 0),
    (
        (
            f"stringd run {STRATEGY.name} --input 'How good are heat pumps?'",
            " less in frost.\n$",
        ),
    ),
)
AGENT: Final = Terminal(
    "agent",
    "an agent, typing commands",
    *(60, 20, 0, 0),
    (
        ("string file:main '/open plan.md'", "findings"),
        ("string bash:logs 'cd /var/log && rg -c error'", "not found\n</𝒞>"),
        (
            "stringd request --reason 'to search the logs' \\\n-- apt-get install ripgrep",
            "-- apt-get",
        ),
    ),
)
WINDOWS: Final = (AGENT, RUN, GATE)


def main(target: Path) -> None:
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        tmux(Path(folder, "tmux.sock")) as run,
    ):
        home = Path(folder)
        pages = home / ".string" / "users" / "default"
        pages.mkdir(parents=True)
        (pages / "plan.md").write_text(PAGE, encoding="utf-8")
        (home / STRATEGY.name).write_bytes(STRATEGY.read_bytes())
        environment = reader(home)
        try:
            for terminal in (GATE, RUN, AGENT):
                play(run, terminal, home, environment)
            wait_for(run, GATE, "Execute as root?")
            shown = {each.name: screen(run, each, "-e") for each in WINDOWS}
        finally:
            stop(int(environment["STRINGD_PORT"]))
    target.write_text(svg(shown), encoding="utf-8")


def reader(home: Path) -> dict[str, str]:
    """The environment of somebody with an empty home and a short prompt."""
    return {
        "HOME": str(home),
        "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
        "PS1": "$ ",
        "PS2": "  ",
        "LANG": "C.UTF-8",
        "XDG_RUNTIME_DIR": str(home),
        "STRINGD_PORT": str(free_port()),
    }


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class Tmux:
    """A tmux server of its own."""

    def __init__(self, socket_path: Path) -> None:
        self._socket_path = socket_path

    def __call__(self, *arguments: str) -> str:
        done = subprocess.run(
            ["tmux", "-S", self._socket_path, "-f", "/dev/null", *arguments],
            check=True,
            capture_output=True,
            text=True,
        )
        return done.stdout


@contextmanager
def tmux(socket_path: Path) -> Iterator[Tmux]:
    run = Tmux(socket_path)
    try:
        yield run
    finally:
        run("kill-server")


def play(run: Tmux, terminal: Terminal, home: Path, environment: Mapping[str, str]) -> None:
    """Open a terminal and type its lines, each after the one before has shown its text."""
    settings = shlex.join(f"{name}={value}" for name, value in environment.items())
    shell = f"cd {shlex.quote(str(home))} && exec env -i TERM=$TERM {settings} bash --norc"
    size = ("-x", str(terminal.columns), "-y", str(terminal.rows))
    run("new-session", "-d", "-s", terminal.name, *size, shell)
    for line, text in terminal.typed:
        wait_for(run, terminal, "$\n", at_end=True)
        for part in line.split("\n"):
            run("send-keys", "-t", terminal.name, "-l", "--", part)
            run("send-keys", "-t", terminal.name, "Enter")
        wait_for(run, terminal, text)


def screen(run: Tmux, terminal: Terminal, *options: str) -> str:
    return run("capture-pane", "-p", *options, "-t", terminal.name)


def wait_for(run: Tmux, terminal: Terminal, text: str, *, at_end: bool = False) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while True:
        shown = screen(run, terminal)
        if f"{shown.rstrip()}\n".endswith(text) if at_end else text in shown:
            return
        if time.monotonic() > deadline:
            raise TimeoutError(f"{terminal.name} never showed {text!r}:\n{shown}")
        time.sleep(0.1)


def svg(shown: Mapping[str, str]) -> str:
    """The terminals as one drawing; text stays text, in the reader's own typeface."""
    width = max(box(each).right for each in WINDOWS)
    height = max(box(each).bottom for each in WINDOWS)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" font-size="13" fill="{PLAIN}" '
        'font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, DejaVu Sans Mono, monospace">'
    )
    bodies = (line for each in WINDOWS for line in drawn(each, shown[each.name]))
    return "\n".join([head, *bodies, "</svg>", ""])


class Box(NamedTuple):
    left: int
    top: int
    right: int
    bottom: int


def box(terminal: Terminal) -> Box:
    """The frame of a terminal, in pixels."""
    left = terminal.left * CELL_WIDTH + (2 * PADDING + GAP if terminal.left else 0)
    top = terminal.top * CELL_HEIGHT + (2 * PADDING + TITLE_HEIGHT + GAP if terminal.top else 0)
    right = left + terminal.columns * CELL_WIDTH + 2 * PADDING
    return Box(left, top, right, top + TITLE_HEIGHT + terminal.rows * CELL_HEIGHT + 2 * PADDING)


def drawn(terminal: Terminal, text: str) -> Iterator[str]:
    left, top, right, bottom = box(terminal)
    size = f'width="{right - left}" height="{bottom - top}"'
    yield f'<rect x="{left}" y="{top}" {size} rx="8" fill="{BACKGROUND}"/>'
    baseline = top + PADDING + 8
    yield f'<text x="{left + PADDING}" y="{baseline}" fill="{TITLE}">{terminal.title}</text>'
    for row, column, run, look in runs(text):
        x, y = (
            left + PADDING + column * CELL_WIDTH,
            top + TITLE_HEIGHT + PADDING + row * CELL_HEIGHT,
        )
        # A length of its own keeps every run on the grid, whatever typeface is there.
        length = f'textLength="{len(run) * CELL_WIDTH}" lengthAdjust="spacingAndGlyphs"'
        place = f'x="{x}" y="{y + 13}" xml:space="preserve"'
        yield f"<text {place} {length}{look}>{escape(run)}</text>"


class Run(NamedTuple):
    """A stretch of text that looks alike, and the attributes of its look."""

    row: int
    column: int
    text: str
    look: str


def runs(text: str) -> Iterator[Run]:
    bold, faint, colour = False, False, PLAIN
    row, column = 0, 0
    for codes, words, end in re.findall(r"(?:\x1b\[([\d;]*)m)?([^\x1b\n]*)(\n?)", text):
        for code in map(int, filter(None, codes.split(";"))):
            match code:
                case 0:
                    bold, faint, colour = False, False, PLAIN
                case 1 | 2:
                    bold, faint = bold or code == 1, faint or code == 2
                case 39:
                    colour = PLAIN
                case _:
                    colour = COLOURS.get(code, colour)
        fill = DIM if faint else colour
        weight = ' font-weight="600"' if bold else ""
        if words.strip():
            yield Run(row, column, words, f'{weight} fill="{fill}"')
        row, column = (row + 1, 0) if end else (row, column + len(words))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else DOCS / "picture.svg")

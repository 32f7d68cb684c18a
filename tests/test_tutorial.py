"""The tutorial, followed to the letter by somebody with an empty home."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.gate.support import RunningGate, running_gate
from tests.support.daemon import WAIT_SECONDS, free_port

PAGE = Path(__file__).parents[1].joinpath("docs", "tutorial.md").read_text(encoding="utf-8")


class Step(NamedTuple):
    """A line the reader types, and what the page says appears."""

    command: str
    shown: str


def steps() -> Iterator[Step]:
    for block in re.findall(r"^```console\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL):
        for part in block.removeprefix("$ ").removesuffix("\n").split("\n$ "):
            command, _, shown = part.partition("\n")
            yield Step(command, f"{shown}\n")


@pytest.fixture
def gate(tmp_path: Path) -> Iterator[RunningGate]:
    with running_gate(tmp_path) as running:
        yield running


@pytest.fixture
def reader(tmp_path: Path, gate: RunningGate) -> Iterator[dict[str, str]]:
    """The reader's environment; whatever happens, no daemon is left."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("STRINGD_")}
    environment = {
        **kept,
        "HOME": str(tmp_path),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "STRINGD_PORT": str(free_port()),
        "STRINGD_GATE_SOCKET": str(gate.path),
    }
    yield environment
    subprocess.run(["stringd", "down"], env=environment, capture_output=True, check=False)


def test_everything_happens_as_the_page_says(
    reader: dict[str, str], gate: RunningGate, tmp_path: Path
) -> None:
    [app] = re.findall(r"^````markdown\n(.*?)^````$", PAGE, re.MULTILINE | re.DOTALL)
    (tmp_path / "greet").mkdir()
    (tmp_path / "greet" / "string.md").write_text(app, encoding="utf-8")
    followed = list(steps())
    assert len(followed) >= 10
    for step in followed:
        shown = follow(step, reader, gate, tmp_path)
        expected = re.escape(step.shown).replace("…", ".*")
        assert re.fullmatch(expected, shown), f"{step.command}\n{shown}"


def follow(step: Step, reader: dict[str, str], gate: RunningGate, folder: Path) -> str:
    """Type a line, approve what it asks the gate for, and read what appears."""
    typed = subprocess.Popen(
        ["bash", "-c", step.command],
        env=reader,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if step.command.startswith("stringd request"):
        gate.terminal.wait_for("timeout, default=N)")
        gate.terminal.type("y")
    return typed.communicate(timeout=WAIT_SECONDS * 2)[0]

"""The tutorial, followed to the letter by somebody with an empty home."""

import os
import re
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.gate.support import RunningGate, running_gate
from tests.support.daemon import WAIT_SECONDS, free_port

ROOT = Path(__file__).parents[1]
PAGE = ROOT.joinpath("docs", "tutorial.md").read_text(encoding="utf-8")
APP = re.findall(r"^````markdown\n(.*?)^````$", PAGE, re.MULTILINE | re.DOTALL)[0]


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
    follow_the_page(reader, gate, tmp_path)


@pytest.mark.soak
@pytest.mark.timeout(900)
def test_everything_happens_so_with_only_the_wheel(
    reader: dict[str, str], gate: RunningGate, tmp_path: Path
) -> None:
    tools, alone = tmp_path / "tools", tmp_path / "alone"
    for place in (tools, alone):
        venv.create(place, with_pip=True)
    subprocess.run([tools / "bin/pip", "install", "-q", "build"], check=True)
    words = ["-m", "build", "-q", "--wheel", "--outdir", str(tmp_path / "built"), str(ROOT)]
    subprocess.run([tools / "bin/python", *words], check=True, capture_output=True)
    (wheel,) = (tmp_path / "built").glob("*.whl")
    subprocess.run([alone / "bin/pip", "install", "-q", f"{wheel}[all]"], check=True)
    reader["PATH"] = f"{alone}/bin:/usr/local/bin:/usr/bin:/bin"
    assert shutil.which("stringd", path=reader["PATH"]) == str(alone / "bin/stringd")
    follow_the_page(reader, gate, tmp_path)
    # Before its environment is gone.
    subprocess.run([alone / "bin/stringd", "down"], env=reader, capture_output=True, check=False)


def follow_the_page(reader: dict[str, str], gate: RunningGate, tmp_path: Path) -> None:
    """Type every line of the tutorial in a folder, and compare what appears."""
    (tmp_path / "greet").mkdir()
    (tmp_path / "greet" / "string.md").write_text(APP, encoding="utf-8")
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


@pytest.mark.parametrize(
    ("page", "first"),
    [
        ("docs/apps.md", "string file:dev '/open ./greet/string.md'"),
        ("docs/apps.md", "string file:setup '/install --mcp sums"),
        ("examples/apps/README.md", "string file:setup '/install ./examples/apps/files'"),
    ],
)
def test_the_lines_for_authors_can_be_typed_as_they_stand(
    reader: dict[str, str], tmp_path: Path, page: str, first: str
) -> None:
    (tmp_path / "greet").mkdir()
    (tmp_path / "greet" / "string.md").write_text(APP, encoding="utf-8")
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    # As in a clone after `make run`.
    (tmp_path / ".venv").symlink_to(sys.prefix)
    text = (ROOT / page).read_text(encoding="utf-8")
    lines = text[text.index(first) :].partition("\n```")[0].splitlines()
    for line in lines:
        if "mcp.example" in line or "FAR_TOKEN" in line:
            continue
        done = subprocess.run(
            ["bash", "-c", line],
            env=reader,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=WAIT_SECONDS * 2,
            check=False,
        )
        assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"

"""`stringd completions` and `stringd man`: they offer what `--help` says."""

import os
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from stringd import __version__
from stringd.cli.main import SUBCOMMANDS, overview
from stringd.cli.shells.help_text import HelpPage, pages, string_page
from stringd.cli.shells.manual import manual
from stringd.cli.shells.scripts import SHELLS
from tests.support.commands import run

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def every() -> list[HelpPage]:
    return pages(SUBCOMMANDS)


def test_every_command_says_something_and_has_its_options(every: list[HelpPage]) -> None:
    assert [page.name for page in every] == list(SUBCOMMANDS)
    for page in every:
        assert page.text.startswith("usage: "), page.name
    known = {page.name: page for page in every}
    assert {"--port", "--log", "--welcome"} <= known["serve"].options.keys()
    assert known["status"].options["--json"] == "print it as one JSON object"
    assert {"list", "show", "resume", "fork"} <= known["runs"].commands.keys()
    assert "--host" in known["request"].options


@pytest.mark.parametrize("shell", SHELLS)
def test_completions_name_every_command(shell: str, every: list[HelpPage]) -> None:
    text = SHELLS[shell](every, string_page())
    for name in SUBCOMMANDS:
        assert name in text
    if program := shutil.which(shell):
        checked = subprocess.run([program, "-n"], input=text.encode(), capture_output=True)
        assert (checked.returncode, checked.stderr) == (0, b"")


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        (["stringd", "doc"], ["doctor"]),
        (["stringd", "runs", "res"], ["resume"]),
        (["stringd", "status", "--j"], ["--json"]),
        (["stringd", "nonsense", "--j"], []),
    ],
)
def test_bash_completes(line: list[str], offered: list[str], every: list[HelpPage]) -> None:
    words = " ".join(line)
    script = (
        f"{SHELLS['bash'](every, string_page())}\n"
        f"COMP_WORDS=({words}); COMP_CWORD={len(line) - 1}; _stringd; echo ${{COMPREPLY[@]}}"
    )
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == offered


def test_every_command_has_a_manual_page(every: list[HelpPage]) -> None:
    made = manual(every, string_page(), overview())
    assert {f"stringd-{name}.1" for name in SUBCOMMANDS} | {"string.1", "stringd.1"} == made.keys()
    for text in made.values():
        assert text.startswith(".TH ")
        body = text.partition(".nf\n")[2].partition("\n.fi")[0]
        assert not [line for line in body.splitlines() if line.startswith((".", "'"))]


def test_pages_are_written_where_asked(tmp_path: Path) -> None:
    env = {**os.environ, "HOME": str(tmp_path)}
    done = run("stringd", "man", str(tmp_path / "man1"), env=env)
    assert done.code == 0
    assert (tmp_path / "man1/stringd-doctor.1").is_file()
    assert run("stringd", "completions", "fish", env=env).out.startswith("complete -c stringd")


def test_string_has_a_second_name_and_both_know_their_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["scripts"]["st"] == "stringd.cli.string:main"
    assert run("string", "--version", env=os.environ).out == f"string {__version__}\n"
    assert run("stringd", "--version", env=os.environ).out == f"stringd {__version__}\n"

"""The container's files: every step names something that is there, and nothing opens the port."""

import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from stringd import __version__
from stringd.cli.main import SUBCOMMANDS

ROOT = Path(__file__).parents[1]
LINES = [
    line
    for line in (ROOT / "Dockerfile").read_text("utf-8").replace("\\\n", " ").splitlines()
    if line and not line.startswith("#")
]
SHOWN = [
    line[1:] for line in (ROOT / ".dockerignore").read_text("utf-8").splitlines() if line[0] == "!"
]


def steps(word: str) -> list[str]:
    return [rest for first, _, rest in (line.partition(" ") for line in LINES) if first == word]


def copied() -> list[list[str]]:
    return [shlex.split(step) for step in steps("COPY") if not step.startswith("--from")]


def extras() -> str:
    found = re.search(r"'(\.\[[a-z,]+\])'", " ".join(steps("RUN")))
    assert found
    return found[1]


def test_what_is_copied_is_there_and_not_ignored() -> None:
    sources = {source for words in copied() for source in words[:-1]}
    assert {each for each in sources if not (ROOT / each).exists()} == set()
    assert sources == set(SHOWN)


def test_what_is_installed_and_started_exists() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert set(extras()[2:-1].split(",")) <= set(project["optional-dependencies"])
    assert steps("ENTRYPOINT") == ['["stringd"]']
    assert steps("CMD") == ['["serve"]']
    assert {"serve", "status"} <= set(SUBCOMMANDS)
    assert steps("USER") == ["1000:1000"]
    assert steps("EXPOSE") == []


def test_compose_keeps_the_loopback_rule() -> None:
    service = yaml.safe_load((ROOT / "compose.yaml").read_text("utf-8"))["services"]["stringd"]
    assert service["network_mode"] == "host"
    assert "ports" not in service
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    (kept,) = re.findall(r"STRINGD_DATA_DIR=(\S+)", " ".join(steps("ENV")))
    assert any(kept.startswith(each.rpartition(":")[2]) for each in service["volumes"])


@pytest.mark.soak
@pytest.mark.timeout(900)
def test_the_files_that_are_copied_are_enough_to_install(tmp_path: Path) -> None:
    context, place = tmp_path / "context", tmp_path / "venv"
    for name in SHOWN:
        target = context / name
        target.parent.mkdir(parents=True, exist_ok=True)
        ignored = shutil.ignore_patterns("__pycache__")
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, target, ignore=ignored)
        else:
            shutil.copy(ROOT / name, target)
    subprocess.run([sys.executable, "-m", "venv", place], check=True)
    words = ["install", "-q", "-c", "requirements.lock", extras()]
    subprocess.run([place / "bin/pip", *words], cwd=context, check=True)
    done = subprocess.run([place / "bin/stringd", "--version"], capture_output=True, check=True)
    assert done.stdout.decode() == f"stringd {__version__}\n"

"""The built wheel, installed as people install tools: by uv, uvx and pipx."""

import json
import os
import shlex
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from scripts.release import INITIALIZE
from stringd import __version__
from tests.support.daemon import free_port

pytestmark = [pytest.mark.soak, pytest.mark.timeout(900)]

ROOT = Path(__file__).parents[1]
INSTALL = {
    "uv": "uv tool install --python {python} {wheel}",
    "pipx": "pipx install --python {python} {wheel}",
}


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the installers are."""
    place = tmp_path_factory.mktemp("tools")
    venv.create(place, with_pip=True)
    words = ["install", "-q", "--disable-pip-version-check", "build", "uv", "pipx"]
    done = subprocess.run([place / "bin/pip", *words], capture_output=True, check=False)
    if done.returncode:
        pytest.skip("uv and pipx could not be installed")
    return place / "bin"


@pytest.fixture(scope="module")
def wheel(tools: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    words = ["-m", "build", "-q", "--wheel", "--outdir", str(folder), str(ROOT)]
    subprocess.run([tools / "python", *words], check=True, capture_output=True)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture
def person(tools: Path, tmp_path: Path) -> dict[str, str]:
    """Somebody who has the installers, and nothing of this checkout."""
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("STRINGD_", "VIRTUAL_"))}
    path = f"{tmp_path}/.local/bin:{tools}:/usr/local/bin:/usr/bin:/bin"
    return inherited | {"HOME": str(tmp_path), "PATH": path, "STRINGD_PORT": str(free_port())}


def said(person: dict[str, str], line: str, stdin: str = "") -> str:
    done = subprocess.run(
        shlex.split(line),
        env=person,
        cwd=person["HOME"],
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def base_python() -> str:
    """The Python below our own environment."""
    return os.path.realpath(sys.executable)


@pytest.mark.parametrize("installer", INSTALL)
def test_what_was_installed_works(installer: str, person: dict[str, str], wheel: Path) -> None:
    said(person, INSTALL[installer].format(python=base_python(), wheel=wheel))
    try:
        assert said(person, "stringd --version") == f"stringd {__version__}\n"
        assert said(person, "st --version") == f"string {__version__}\n"
        assert 'x} = "1"' in said(person, "string file:main '/set {x} = 1'")
        assert __version__ in said(person, "stringd status --json")
    finally:
        said(person, "stringd down")


def test_uvx_serves_mcp_from_the_wheel(person: dict[str, str], wheel: Path) -> None:
    line = f"uvx --python {base_python()} --from {wheel} stringd"
    try:
        answer = json.loads(
            said(person, f"{line} mcp", json.dumps(INITIALIZE) + "\n").split("\n")[0]
        )
        assert answer["result"]["serverInfo"] == {"name": "string", "version": __version__}
    finally:
        said(person, f"{line} down")

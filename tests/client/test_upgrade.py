"""A daemon that an update left behind."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from stringd import __version__
from stringd.client.daemon import health, healthy
from stringd.client.upgrade import is_older
from tests.support.commands import run
from tests.support.daemon import WAIT_SECONDS, free_port
from tests.support.http import request

OLD = "0.0.9"
SERVE = f"""
import stringd, sys
stringd.__version__ = {OLD!r}
from stringd.cli.main import main
sys.exit(main())
"""


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[dict[str, str]]:
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("STRINGD_")}
    env = {**inherited, "HOME": str(tmp_path), "STRINGD_PORT": str(free_port())}
    yield env
    run("stringd", "down", env=env)


@contextmanager
def earlier(env: dict[str, str], data: Path) -> Iterator[int]:
    """A running daemon that says it is of an earlier version; its port."""
    old = subprocess.Popen(
        [sys.executable, "-c", SERVE, "serve"],
        env=env | {"STRINGD_DATA_DIR": str(data)},
        stdout=subprocess.PIPE,
    )
    try:
        assert old.stdout is not None
        assert b"listening" in old.stdout.readline()
        yield int(env["STRINGD_PORT"])
    finally:
        old.terminate()
        old.wait(WAIT_SECONDS)
        if old.stdout is not None:
            old.stdout.close()


def version(port: int) -> object:
    return (health(port) or {}).get("version")


def test_an_idle_one_is_replaced(machine: dict[str, str], tmp_path: Path) -> None:
    with earlier(machine, tmp_path / ".string/daemon") as port:
        assert version(port) == OLD
        done = run("stringd", "up", env=machine)
        said = f"stringd started on port {port} in place of version {OLD}\n"
        assert done == (0, said, "")
        assert version(port) == __version__


def test_one_with_a_live_shell_stays_and_is_named(machine: dict[str, str], tmp_path: Path) -> None:
    with earlier(machine, tmp_path / ".string/daemon") as port:
        request(port, "POST", "/users", {"id": "ada", "home": str(tmp_path / "ada")})
        run("string", "--user", "ada", "bash:dev", "echo hello", env=machine)
        done = run("stringd", "up", env=machine)
        assert done.out == (
            f"stringd already running on port {port}\n"
            f"It is version {OLD}, with 1 live shell(s). "
            f"To use {__version__}: stringd down, then stringd up\n"
        )
        assert version(port) == OLD


def test_one_with_other_data_stays(machine: dict[str, str], tmp_path: Path) -> None:
    with earlier(machine, tmp_path / "elsewhere") as port:
        assert f"data in {tmp_path / 'elsewhere'}" in run("stringd", "up", env=machine).out
        assert healthy(port)


@pytest.mark.parametrize(
    ("version", "other", "older"),
    [
        ("0.1.0", "0.2.0", True),
        ("0.9.0", "0.10.0", True),
        ("0.2.0", "0.2.0", False),
        ("0.3.0", "0.2.0", False),
        ("", "0.2.0", False),
        ("0.1.0rc1", "0.2.0", False),
    ],
)
def test_versions_are_compared_as_numbers(version: str, other: str, older: bool) -> None:
    assert is_older(version, other) is older

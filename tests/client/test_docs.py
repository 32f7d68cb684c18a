"""The code on the page about clients runs as it stands."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import stringd.client
from tests.client.support import Account
from tests.support.daemon import WAIT_SECONDS, Daemon

ROOT = Path(__file__).parents[2]
PAGE = ROOT.joinpath("docs", "clients.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def environment(daemon: Daemon, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """One reader of the page, who tries the blocks in order."""
    home = tmp_path_factory.mktemp("reader")
    return {
        **os.environ,
        "STRINGD_PORT": str(daemon.port),
        "STRINGD_USER": "reader",
        "STRINGD_HOME": str(home),
        "STRINGD_GATE_SOCKET": str(home / "gate.sock"),
    }


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_each_block_runs(number: int, environment: dict[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", BLOCKS[number]],
        env=environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=WAIT_SECONDS,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_the_run_of_the_page_comes_to_its_result(environment: dict[str, str]) -> None:
    [block] = [block for block in BLOCKS if "AsyncRuns" in block]
    done = subprocess.run(
        [sys.executable, "-c", block],
        env=environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=WAIT_SECONDS,
        check=True,
    )
    assert "\nresult: " in done.stdout


def test_every_public_class_is_on_the_page() -> None:
    values_and_bases = {"Health", "OpenDocument", "RegisteredUser", "RunsError", "TopicState"}
    public = set(stringd.client.__all__) - values_and_bases
    assert {name for name in public if f"`{name}" not in PAGE} == set()


def test_every_method_is_on_the_page(account: Account) -> None:
    methods = {name for name in vars(stringd.client.String) if not name.startswith("_")}
    left_out = {"close", "connect", "port", "user"}
    assert {name for name in methods - left_out if f"{name}(" not in PAGE} == set()

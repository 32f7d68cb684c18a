"""Keys that a daemon moves out of its environment."""

import subprocess
import sys

from tests.support.daemon import WAIT_SECONDS

PROGRAM = """
import os, pathlib
from stringd.runs.models.credentials import Credentials, FileVault, secret_of
from stringd.system.provider_keys import take_provider_keys, with_provider_keys
take_provider_keys()
shown = pathlib.Path("/proc/self/environ").read_bytes()
child = os.popen("env").read()
print(b"CANARY" in shown, "CANARY" in child, "OPENAI_API_KEY" in os.environ)
print(b"KEPT=as it was" in shown, os.environ["KEPT"], os.environ["OPENAI_BASE_URL"])
found = Credentials(FileVault(pathlib.Path("/nonexistent/vault"))).find("openai")
print(secret_of(found), with_provider_keys()["OTHER_API_KEY"])
os.environ["OPENAI_API_KEY"] = "set later"
print(with_provider_keys()["OPENAI_API_KEY"])
"""


def test_taken_keys_are_in_no_environment_and_still_serve_the_provider() -> None:
    environment = {
        "OPENAI_API_KEY": "CANARY-1",
        "KEPT": "as it was",
        "OTHER_API_KEY": "CANARY-2",
        "OPENAI_BASE_URL": "http://127.0.0.1:1",
    }
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=environment,
        capture_output=True,
        text=True,
        timeout=WAIT_SECONDS,
        check=False,
    )
    assert done.stdout.splitlines() == [
        "False False False",
        "True as it was http://127.0.0.1:1",
        "CANARY-1 CANARY-2",
        "set later",
    ], done.stderr


def test_without_keys_nothing_changes() -> None:
    program = """
import os, pathlib
from stringd.system.provider_keys import take_provider_keys
before = pathlib.Path("/proc/self/environ").read_bytes()
take_provider_keys()
assert pathlib.Path("/proc/self/environ").read_bytes() == before
"""
    argv = [sys.executable, "-c", program]
    environment = {"A": "OPENAI_API_KEY=x", "B": ""}
    subprocess.run(argv, env=environment, timeout=WAIT_SECONDS, check=True)

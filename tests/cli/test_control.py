"""`stringd up`, `down` and `status`."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.commands import run
from tests.support.daemon import Daemon, another_program, free_port


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[dict[str, str]]:
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("STRINGD_")}
    env = {**inherited, "HOME": str(tmp_path), "STRINGD_PORT": str(free_port())}
    yield env
    run("stringd", "down", env=env)


def test_up_waits_until_the_daemon_answers_and_down_until_it_is_gone(
    machine: dict[str, str],
) -> None:
    port = machine["STRINGD_PORT"]
    steps = [
        ("status", 1, "stringd is not running\n"),
        ("up", 0, f"stringd started on port {port}\n"),
        ("up", 0, f"stringd already running on port {port}\n"),
        ("status", 0, f"stringd running on port {port} — 0 user(s), 0 session(s)\n"),
        ("down", 0, "stringd stopped\n"),
        ("down", 0, "stringd is not running\n"),
    ]
    for name, code, said in steps:
        assert run("stringd", name, env=machine) == (code, said, "")


def test_status_for_scripts_is_json(daemon: Daemon, env: dict[str, str]) -> None:
    done = run("stringd", "status", "--json", env=env)
    said = json.loads(done.out)
    assert done.code == 0
    assert (said["running"], said["port"], said["ok"]) == (True, daemon.port, True)
    nobody = str(free_port())
    done = run("stringd", "status", "--json", "--port", nobody, env=env)
    assert (done.code, json.loads(done.out)) == (1, {"running": False, "port": int(nobody)})


def test_an_unusable_port_is_named(env: dict[str, str]) -> None:
    done = run("stringd", "up", "--port", "x", env=env)
    assert done == (1, "", "stringd: --port must be a port between 1 and 65535, not 'x'\n")


@pytest.mark.parametrize("name", ["up", "down", "status", "serve", "doctor", "allow"])
def test_help_helps(env: dict[str, str], name: str) -> None:
    done = run("stringd", name, "--help", env=env)
    assert done.code == 0
    assert done.out.startswith(f"usage: stringd {name} ")
    assert len(done.out.splitlines()) > 5


def test_the_main_command_explains_itself(env: dict[str, str]) -> None:
    assert run("stringd", env=env).out == run("stringd", "--help", env=env).out
    assert run("stringd", "--version", env=env).out.startswith("stringd ")
    done = run("stringd", "staus", env=env)
    assert (done.code, done.out) == (2, "")
    assert done.err == (
        "stringd: unknown command 'staus'. Did you mean status? See stringd --help.\n"
    )


def test_a_daemon_that_cannot_start_points_to_the_reason(env: dict[str, str]) -> None:
    with another_program() as port:
        done = run("stringd", "up", env={**env, "STRINGD_PORT": str(port)})
    assert (done.code, done.out) == (1, "")
    (failed,) = done.err.splitlines()
    assert failed.startswith(
        f"stringd: failed to start stringd on port {port}: cannot listen on 127.0.0.1:{port}: "
    )

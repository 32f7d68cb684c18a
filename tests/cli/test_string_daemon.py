"""`string --daemon …`: starting, stopping and asking after the daemon."""

import os
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.requirements import proves
from tests.support.commands import run
from tests.support.daemon import WAIT_SECONDS, Daemon, free_port
from tests.support.http import request


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[dict[str, str]]:
    """An environment in which no daemon runs, and none is left running."""
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("STRINGD_")}
    env = {**inherited, "HOME": str(tmp_path), "STRINGD_PORT": str(free_port())}
    yield env
    run("string", "--daemon", "stop", env=env)


@proves("CLIENT-02")
def test_the_daemon_is_started_asked_after_and_stopped(machine: dict[str, str]) -> None:
    port = machine["STRINGD_PORT"]
    status = f"stringd running on port {port} — 0 user(s), 0 session(s)\n"
    steps = [
        (("status",), 1, "stringd is not running\n"),
        (("stop",), 0, "stringd is not running\n"),
        (("start",), 0, f"stringd started on port {port}\n"),
        (("start",), 0, f"stringd already running on port {port}\n"),
        ((), 0, f"stringd already running on port {port}\n"),
        (("status",), 0, status),
        (("stop",), 0, "stringd stopped\n"),
        (("status",), 1, "stringd is not running\n"),
    ]
    for words, code, said in steps:
        assert run("string", "--daemon", *words, env=machine) == (code, said, "")


def test_the_state_of_a_started_daemon_is_private(machine: dict[str, str]) -> None:
    run("string", "--daemon", "start", "--log", env=machine)
    state = Path(machine["HOME"]) / ".string" / "daemon"
    assert stat.S_IMODE(state.stat().st_mode) == 0o700
    assert stat.S_IMODE((state / "logs" / "stringd.log").stat().st_mode) == 0o600


def test_a_port_can_be_given(machine: dict[str, str]) -> None:
    other = str(free_port())
    assert run("string", "--daemon", "start", other, env=machine).out == (
        f"stringd started on port {other}\n"
    )
    assert run("string", "--daemon", "status", env=machine).code == 1
    assert run("string", "--daemon", "stop", other, env=machine).out == "stringd stopped\n"


@pytest.mark.parametrize("words", [("bogus",), ("bogus", "no-port"), ("restart", "3100")])
def test_an_unknown_daemon_command_is_named(
    machine: dict[str, str], words: tuple[str, ...]
) -> None:
    done = run("string", "--daemon", *words, env=machine)
    assert done == (
        1,
        "",
        f"string: unknown daemon command: {words[0]}\nUsage: string --daemon [start|stop|status]\n",
    )


def test_an_unusable_port_is_named(machine: dict[str, str]) -> None:
    done = run("string", "--daemon", "status", "0", env=machine)
    assert done == (1, "", "string: port must be a port between 1 and 65535, not '0'\n")


def test_a_port_of_another_program_cannot_be_started_on(machine: dict[str, str]) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", int(machine["STRINGD_PORT"])))
        done = run("string", "--daemon", "start", env=machine)
    port = machine["STRINGD_PORT"]
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith(
        f"string: failed to start stringd on port {port}: cannot listen on 127.0.0.1:{port}"
    )


def test_a_daemon_can_run_in_the_foreground(tmp_path: Path) -> None:
    daemon = Daemon(tmp_path)
    code = "import sys; from stringd.cli.string import main; sys.exit(main())"
    with subprocess.Popen(
        [sys.executable, "-c", code, "--daemon", "foreground", str(daemon.port)],
        env={**daemon.child_environment(), "STRINGD_PORT": ""},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        said = f"stringd listening on http://127.0.0.1:{daemon.port}\n"
        assert process.stdout.readline() == said
        assert request(daemon.port, "POST", "/shutdown").status == 200
        assert process.wait(WAIT_SECONDS) == 0

"""Clients find the running daemon by its data directory when nobody tells them the port."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.commands import run
from tests.support.daemon import Daemon
from tests.support.http import request


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with Daemon(tmp_path_factory.mktemp("found")) as running:
        yield running


@pytest.fixture
def env(daemon: Daemon) -> dict[str, str]:
    """What a client has left that strips the environment of what it starts."""
    found = daemon.child_environment()
    del found["STRINGD_PORT"]
    return found


def users(daemon: Daemon) -> list[str]:
    return [each["id"] for each in request(daemon.port, "GET", "/users").json["users"]]


def test_string_finds_it(daemon: Daemon, env: dict[str, str]) -> None:
    done = run("string", "--user", "by-string", "file:main", "/info", env=env)
    assert done.code == 0, done
    assert "by-string" in users(daemon)


def test_the_mcp_bridge_finds_it(daemon: Daemon, env: dict[str, str]) -> None:
    asked = {"name": "string", "arguments": {"topic": "file:main", "command": "/info"}}
    line = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": asked}
    stdin = json.dumps(line).encode() + b"\n"
    done = run("stringd", "mcp", "--user", "by-mcp", env=env, stdin=stdin)
    assert json.loads(done.out)["id"] == 1
    assert "by-mcp" in users(daemon)


@pytest.mark.parametrize("command", [("status", "--json"), ("doctor", "--json")], ids=" ".join)
def test_the_others_find_it(daemon: Daemon, env: dict[str, str], command: tuple[str, ...]) -> None:
    done = run("stringd", *command, env=env)
    assert daemon.process is not None
    assert str(daemon.process.pid) in done.out


def test_a_port_that_is_told_wins(daemon: Daemon, tmp_path: Path) -> None:
    with Daemon(tmp_path) as other:
        told = {**daemon.child_environment(), "STRINGD_PORT": str(other.port)}
        assert run("string", "--user", "told", "file:main", "/info", env=told).code == 0
        assert "told" in users(other)
    assert "told" not in users(daemon)


def test_a_second_daemon_says_who_holds_the_directory(daemon: Daemon, tmp_path: Path) -> None:
    assert daemon.process is not None
    with Daemon(tmp_path, STRINGD_DATA_DIR=str(daemon.data_dir)) as second:
        pass
    said = "".join(second.output)
    assert (
        f"is used by another daemon too: process {daemon.process.pid}, port {daemon.port}" in said
    )
    assert f"STRINGD_PORT={daemon.port}" in said

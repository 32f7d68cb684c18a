"""`stringd watch` against a real daemon."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from stringd.cli.watch import line
from tests.support.daemon import WAIT_SECONDS, Daemon, free_port
from tests.support.http import User, request


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with Daemon(tmp_path_factory.mktemp("watch")) as running:
        yield running


@pytest.fixture(scope="module")
def user(daemon: Daemon) -> User:
    return User(daemon.port, "watched", daemon.home)


def watch(port: int, *arguments: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "stringd", "watch", "--port", str(port), *arguments]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd="/"
    )


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_it_prints_what_happened_after_an_event_and_goes_on(
    daemon: Daemon, user: User, form: tuple[str, ...]
) -> None:
    position = request(daemon.port, "GET", "/overview").json["position"]
    user.exec("/help", "file:before")
    with watch(daemon.port, "--after", position, "--types", "topic.done", *form) as watching:
        assert watching.stdout is not None
        first = watching.stdout.readline()
        user.exec("/nonsense", "file:after")
        second = watching.stdout.readline()
        watching.terminate()
        watching.communicate(timeout=WAIT_SECONDS)
    if form:
        events = [json.loads(first), json.loads(second)]
        assert [each["topic"] for each in events] == ["file:before", "file:after"]
    else:
        assert "topic.done       file:before  /help  ok" in first
        assert "file:after  /nonsense  COMMAND_UNSUPPORTED" in second


def test_without_a_daemon_it_says_so_and_fails() -> None:
    with watch(free_port()) as watching:
        _, said = watching.communicate(timeout=WAIT_SECONDS)
    assert watching.returncode == 1
    assert said.startswith("stringd: no stringd answers on port ")
    assert "stringd up" in said


def test_a_kind_that_is_not_one_is_refused_with_the_list(daemon: Daemon) -> None:
    with watch(daemon.port, "--types", "topics") as watching:
        _, said = watching.communicate(timeout=WAIT_SECONDS)
    assert (watching.returncode, "topic.done" in said) == (1, True)


def test_it_follows_a_daemon_that_is_started_again(tmp_path: Path) -> None:
    with Daemon(tmp_path) as daemon:
        user = User(daemon.port, "u", tmp_path / "u")
        position = request(daemon.port, "GET", "/overview").json["position"]
        user.exec("/help", "file:one")
        with watch(daemon.port, "--after", position, "--types", "topic.done") as watching:
            assert watching.stdout is not None
            assert "file:one" in watching.stdout.readline()
            daemon.stop()
            daemon.start()
            user.exec("/help", "file:two")
            assert "the daemon was started again" in watching.stdout.readline()
            assert "file:two" in watching.stdout.readline()
            watching.terminate()
            watching.communicate(timeout=WAIT_SECONDS)


def test_what_an_event_holds_cannot_drive_the_terminal() -> None:
    event = {"kind": "topic.created", "ts": "2026-01-01T10:11:12.000Z", "topic": "file:\x1b[2J\x07"}
    assert line(event) == "10:11:12  topic.created    file:\\x1b[2J\\x07"

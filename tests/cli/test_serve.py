"""`stringd serve` at its command line; what it serves is proved in tests/server."""

import signal
from pathlib import Path

import pytest

from tests.support.commands import run
from tests.support.daemon import Daemon
from tests.support.http import User, request


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("STRINGD_QUEUE_TIMEOUT_MS", "soon"),
        ("STRINGD_BASH_TIMEOUT_MS", "-5"),
        ("STRINGD_ACTION_TIMEOUT_MS", "0"),
    ],
)
def test_an_unusable_setting_is_named(env: dict[str, str], name: str, value: str) -> None:
    done = run("stringd", "serve", env={**env, name: value})
    said = f"stringd: {name} must be a number of milliseconds above 0, not '{value}'\n"
    assert done == (1, "", said)


def test_a_data_directory_that_is_a_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("", encoding="utf-8")
    environment = Daemon(tmp_path).child_environment()
    done = run("stringd", "serve", env={**environment, "STRINGD_DATA_DIR": str(path)})
    assert (done.code, done.out) == (1, "")
    assert done.err == f"stringd: File exists: {path}\n"


def test_a_registry_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    daemon = Daemon(tmp_path)
    (tmp_path / "data" / "users.json").mkdir(parents=True)
    done = run("stringd", "serve", env=daemon.child_environment())
    assert (done.code, done.out) == (1, "")
    assert done.err == f"stringd: Is a directory: {tmp_path}/data/users.json\n"


def test_the_welcome_workspace_is_ready_to_try(tmp_path: Path) -> None:
    with Daemon(tmp_path, "--welcome") as daemon:
        users = request(daemon.port, "GET", "/users").json["users"]
        home = tmp_path / ".string" / "users" / "default"
        assert [(user["id"], user["home"]) for user in users] == [("default", str(home))]
        page = (home / "welcome.md").read_text(encoding="utf-8")
        assert "title: Welcome" in page
        user = User(daemon.port, "default", home)
        assert "welcome.md" in user.exec("/ls")[1]
        (home / "welcome.md").write_text("mine now", encoding="utf-8")
    said = "".join(daemon.output)
    assert f"STRINGD_PORT={daemon.port} " in said
    assert "Try, in another terminal:" in said
    assert f"in a browser: http://127.0.0.1:{daemon.port}/\n" in said
    with daemon:
        assert (home / "welcome.md").read_text(encoding="utf-8") == "mine now"


def test_ctrl_c_stops_it_without_a_trace(tmp_path: Path) -> None:
    daemon = Daemon(tmp_path)
    daemon.start()
    assert daemon.stop(signal.SIGINT) == 0
    assert len(daemon.output) == 1


def test_it_can_start_again_at_once_on_the_same_port(tmp_path: Path) -> None:
    daemon = Daemon(tmp_path)
    for _ in range(2):
        with daemon:
            assert request(daemon.port, "GET", "/health").status == 200


def test_children_do_not_inherit_its_sockets(tmp_path: Path) -> None:
    with Daemon(tmp_path) as daemon:
        user = User(daemon.port, "default", daemon.home)
        _, content = user.exec("/exec ls -l /proc/self/fd")
        assert "socket:" not in content
        assert str(daemon.data_dir) not in content

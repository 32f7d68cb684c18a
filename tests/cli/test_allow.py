"""`stringd allow`: directories outside a user's home."""

import json
from pathlib import Path

import pytest

from tests.support.commands import Done, run
from tests.support.daemon import Daemon, free_port
from tests.support.http import User, request


@pytest.fixture
def user(daemon: Daemon, env: dict[str, str]) -> User:
    return User(daemon.port, env["STRINGD_USER"], Path(env["STRINGD_HOME"]))


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "page.md").write_text("# Page\n", encoding="utf-8")
    return tmp_path / "outside"


def allowed(user: User) -> list[str]:
    listed = request(user.port, "GET", "/users").json["users"]
    return next(item["allowedPaths"] for item in listed if item["id"] == user.id)


def test_an_allowed_directory_is_reachable_at_once(
    user: User, env: dict[str, str], outside: Path
) -> None:
    assert user.exec(f"/ls {outside}")[0]["code"] == "FILE_NOT_ALLOWED"
    done = run("stringd", "allow", str(outside), env=env)
    said = f"User {user.id} may reach:\n  {user.home} (home)\n  {outside}\n"
    assert done == (0, said, "")
    assert "page.md" in user.exec(f"/ls {outside}")[1]


def test_allowing_twice_is_allowing_once(user: User, env: dict[str, str], outside: Path) -> None:
    for _ in range(2):
        run("stringd", "allow", str(outside), env=env)
    assert allowed(user) == [str(outside)]


def test_a_relative_path_means_from_here(user: User, env: dict[str, str], outside: Path) -> None:
    run("stringd", "allow", "../outside/.", env=env, cwd=outside)
    assert allowed(user) == [str(outside)]


def test_a_directory_can_be_taken_back(user: User, env: dict[str, str], outside: Path) -> None:
    run("stringd", "allow", str(outside), env=env)
    assert run("stringd", "allow", str(outside), "--remove", env=env).code == 0
    assert allowed(user) == []
    assert user.exec(f"/ls {outside}")[0]["code"] == "FILE_NOT_ALLOWED"
    done = run("stringd", "allow", str(outside), "--remove", env=env)
    assert done == (1, "", f"stringd: {outside} was not allowed\n")


def test_a_removed_directory_can_be_taken_back(user: User, env: dict[str, str]) -> None:
    body = {"id": user.id, "home": str(user.home), "allowed_paths": ["/gone/away"]}
    request(user.port, "POST", "/users", body)
    assert run("stringd", "allow", "/gone/away", "--remove", env=env).code == 0
    assert allowed(user) == []


def test_the_list_for_scripts_is_json(user: User, env: dict[str, str], outside: Path) -> None:
    run("stringd", "allow", str(outside), env=env)
    done = run("stringd", "allow", "--list", "--json", env=env)
    expected = {"user": user.id, "home": str(user.home), "allowed": [str(outside)]}
    assert (done.code, json.loads(done.out)) == (0, expected)


def test_another_user_can_be_named(user: User, env: dict[str, str], outside: Path) -> None:
    plain = {**env, "STRINGD_USER": "somebody-else"}
    assert run("stringd", "allow", str(outside), "--user", user.id, env=plain).code == 0
    assert allowed(user) == [str(outside)]


def _fails(done: Done, said: str) -> None:
    assert (done.code, done.out) == (1, "")
    assert said in done.err
    assert len(done.err.splitlines()) == 1


def test_what_cannot_be_done_is_said_in_one_line(
    user: User, env: dict[str, str], outside: Path
) -> None:
    _fails(run("stringd", "allow", "/no/such", env=env), "no such directory: /no/such")
    _fails(run("stringd", "allow", "/", "--user", "nobody", env=env), "unknown user: nobody")
    nobody_there = {**env, "STRINGD_PORT": str(free_port())}
    _fails(run("stringd", "allow", str(outside), env=nobody_there), "Start the daemon: stringd up")
    _fails(run("stringd", "allow", "/", env={**env, "STRINGD_PORT": "x"}), "STRINGD_PORT must be")


def test_without_a_path_the_usage_is_shown(env: dict[str, str]) -> None:
    done = run("stringd", "allow", env=env)
    assert done.code == 2
    assert "name a directory, or use --list" in done.err

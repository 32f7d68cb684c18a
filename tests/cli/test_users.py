"""`string user`: who there is, and whom `string` acts as."""

import json
from pathlib import Path

import pytest

from stringd.client.daemon import own_directory
from stringd.client.identity import identity
from tests.support.commands import Done, run
from tests.support.daemon import Daemon
from tests.support.http import request


@pytest.fixture
def plain(env: dict[str, str], tmp_path: Path) -> dict[str, str]:
    """Nobody is named in the environment, and choices are kept apart."""
    config = str(tmp_path / "own" / "config.json")
    return {**env, "STRINGD_USER": "", "STRINGD_HOME": "", "STRINGD_CONFIG": config}


def user(env: dict[str, str], *words: str) -> Done:
    return run("string", "user", *words, env=env)


def homes(daemon: Daemon) -> dict[str, str]:
    listed = request(daemon.port, "GET", "/users").json["users"]
    return {each["id"]: each["home"] for each in listed}


def test_a_user_is_added_moved_and_removed(
    daemon: Daemon, plain: dict[str, str], tmp_path: Path
) -> None:
    first, second = str(tmp_path / "first"), str(tmp_path / "second")
    assert user(plain, "add", "zoe", first) == (0, f"zoe  {first}\n", "")
    assert homes(daemon)["zoe"] == first
    assert user(plain, "set-home", "zoe", second).code == 0
    assert homes(daemon)["zoe"] == second
    assert user(plain, "rm", "zoe") == (0, "zoe\n", "")
    assert "zoe" not in homes(daemon)
    assert Path(second).is_dir()
    assert user(plain, "rm", "zoe") == (1, "", "string: unknown user: zoe\n")
    assert user(plain, "set-home", "zoe", first) == (1, "", "string: unknown user: zoe\n")


def test_a_user_says_how_edits_are_answered(daemon: Daemon, plain: dict[str, str]) -> None:
    assert user(plain, "add", "xia").code == 0
    assert user(plain, "set", "xia", "diffs", "on") == (0, "xia  diffs on\n", "")
    assert user(plain, "set", "xia", "guard", "off") == (0, "xia  guard off\n", "")
    listed = request(daemon.port, "GET", "/users").json["users"]
    (found,) = [each for each in listed if each["id"] == "xia"]
    assert (found["diffs"], found["overwriteGuard"]) == (True, False)
    assert user(plain, "set", "nobody", "diffs", "on").err == "string: unknown user: nobody\n"


def test_a_user_without_a_home_gets_one_of_its_own(daemon: Daemon, plain: dict[str, str]) -> None:
    assert user(plain, "add", "yan").code == 0
    assert homes(daemon)["yan"] == str(daemon.directory / ".string" / "users" / "yan")


def test_the_user_in_use_is_the_one_string_acts_as(
    daemon: Daemon, plain: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert user(plain, "current").out == "default\n"
    config = Path(plain["STRINGD_CONFIG"])
    config.parent.mkdir()
    config.write_text('{"theirs": [1]}', encoding="utf-8")
    assert user(plain, "use", "uma") == (0, "uma\n", "")
    assert json.loads(config.read_text(encoding="utf-8")) == {"theirs": [1], "currentUser": "uma"}
    assert config.stat().st_mode & 0o777 == 0o600
    assert user(plain, "current").out == "uma\n"
    assert run("string", "file:main", "/set {x} = 1", env=plain).code == 0
    assert "* uma  " in user(plain, "list").out
    assert "  default  " not in user({**plain, "STRINGD_USER": "uma"}, "current").out
    assert user({**plain, "STRINGD_USER": "vic"}, "current").out == "vic\n"
    assert '{x} = "1"' in run("string", "--user", "uma", "file:main", "/set", env=plain).out
    monkeypatch.setenv("STRINGD_CONFIG", str(config))
    monkeypatch.delenv("STRINGD_USER", raising=False)
    assert identity().user == "uma"
    request(daemon.port, "DELETE", "/users/uma")


def test_adding_a_known_user_moves_it_only_to_a_chosen_home(
    daemon: Daemon, plain: dict[str, str], tmp_path: Path
) -> None:
    first, second = str(tmp_path / "first"), str(tmp_path / "second")
    assert user(plain, "add", "tom", "--home", first).out == f"tom  {first}\n"
    assert user(plain, "add", "tom").out == f"tom  {first}\n"
    assert user(plain, "add", "tom", second).out == f"tom  {second}\n"
    assert homes(daemon)["tom"] == second


def test_a_removed_user_is_no_longer_the_one_in_use(plain: dict[str, str]) -> None:
    for words in (("add", "ida"), ("use", "ida"), ("rm", "ida")):
        assert user(plain, *words).code == 0
    assert user(plain, "current").out == "default\n"
    assert json.loads(Path(plain["STRINGD_CONFIG"]).read_text(encoding="utf-8")) == {}


@pytest.mark.parametrize("content", ["{broken", "[]"])
def test_a_file_that_cannot_be_read_is_not_overwritten(plain: dict[str, str], content: str) -> None:
    config = Path(plain["STRINGD_CONFIG"])
    config.parent.mkdir()
    config.write_text(content, encoding="utf-8")
    assert user(plain, "current").out == "default\n"
    refused = user(plain, "use", "uma")
    assert refused.code == 1
    assert refused.err.startswith(f"string: cannot read {config}: ")
    assert config.read_text(encoding="utf-8") == content


@pytest.mark.parametrize("words", [("add",), ("nonsense",), ("use",), ("list", "extra")])
def test_what_is_not_understood_gets_the_usage(plain: dict[str, str], words: tuple[str]) -> None:
    done = user(plain, *words)
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("usage: string user list")


def test_an_unprintable_user_is_refused(plain: dict[str, str]) -> None:
    assert user(plain, "use", "a\x1b[2J").err == "string: a user id is printable text\n"
    assert user(plain, "add", " ").err == "string: a user id is printable text\n"


def test_a_topic_may_still_be_called_user(plain: dict[str, str]) -> None:
    assert run("string", "user", "/set {x} = 1", env=plain).out.startswith("<𝒞=string:file:user>")


@pytest.mark.parametrize(
    ("user_id", "name"), [("uma", "uma"), ("../../etc", "..%2F..%2Fetc"), ("..", "%2E%2E")]
)
def test_a_user_nobody_gave_a_home_lives_among_the_others(user_id: str, name: str) -> None:
    assert own_directory(user_id) == f"~/.string/users/{name}"

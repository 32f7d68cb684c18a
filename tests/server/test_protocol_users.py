"""`/users` as the protocol fixes it."""

import json
import re
import shutil
import stat
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.requirements import proves
from tests.support.daemon import Daemon
from tests.support.http import Answer, Blocked, User, Wire, message, request


def register(daemon: Daemon, **fields: object) -> Answer:
    return request(daemon.port, "POST", "/users", fields)


def listed(daemon: Daemon, user_id: str) -> dict[str, object] | None:
    users = request(daemon.port, "GET", "/users").json["users"]
    found: dict[str, object] | None = next((u for u in users if u["id"] == user_id), None)
    return found


@proves("USER-03", "HTTP-11")
def test_registering_a_new_user_answers_created(daemon: Daemon) -> None:
    answer = register(daemon, id="new", home="/home/new")
    assert answer.status == 200
    assert answer.body == b'{"user_id":"new","home":"/home/new","created":true}'
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.headers["Content-Length"] == str(len(answer.body))


@proves("USER-01", "USER-02")
def test_the_listing_shows_id_home_allowed_paths_and_creation_time(daemon: Daemon) -> None:
    register(daemon, id="listed", home="/home/listed")
    item = listed(daemon, "listed")
    assert item is not None
    assert list(item) == ["id", "home", "allowedPaths", "createdAt"]
    assert item["home"] == "/home/listed"
    assert item["allowedPaths"] == []
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", str(item["createdAt"]))


@proves("USER-04")
def test_registering_again_updates_the_home_and_keeps_the_creation_time(daemon: Daemon) -> None:
    register(daemon, id="again", home="/home/one")
    before = listed(daemon, "again")
    answer = register(daemon, id="again", home="/home/two")
    assert answer.body == b'{"user_id":"again","home":"/home/two","created":false}'
    after = listed(daemon, "again")
    assert before is not None
    assert after == {**before, "home": "/home/two"}


@proves("USER-05", "HTTP-08")
@pytest.mark.parametrize(
    "body",
    [
        b'{"home":"/h"}',
        b'{"id":"","home":"/h"}',
        b'{"id":"  \\t","home":"/h"}',
        b'{"id":null,"home":"/h"}',
        b"{}",
        b"",
        b"not json",
        b"[]",
        b"null",
        b'"id"',
        b'{"id":"x"',
        b'{"id":"\xff","home":"/h"}',
    ],
)
def test_without_an_id_the_answer_says_so(daemon: Daemon, body: bytes) -> None:
    answer = request(daemon.port, "POST", "/users", body)
    assert (answer.status, answer.body) == (400, b'{"error":"id required"}')


@proves("USER-06")
@pytest.mark.parametrize("home", ["", "   ", None])
def test_without_a_home_the_answer_says_so(daemon: Daemon, home: str | None) -> None:
    answer = register(daemon, id="homeless", home=home)
    assert (answer.status, answer.body) == (400, b'{"error":"home required"}')
    assert listed(daemon, "homeless") is None


@proves("USER-07")
@pytest.mark.parametrize("home", ["relative/path", "~", "./x", "C:\\x", "/nul\0byte"])
def test_a_home_must_be_absolute(daemon: Daemon, home: str) -> None:
    answer = register(daemon, id="relative", home=home)
    assert (answer.status, answer.json) == (400, {"error": "home must be an absolute path"})


@proves("USER-21", "HTTP-08")
@pytest.mark.parametrize("value", [1, 1.5, True, [], {}, ["a"]])
@pytest.mark.parametrize("field", ["id", "home"])
def test_a_field_of_another_type_is_named(daemon: Daemon, field: str, value: object) -> None:
    fields: dict[str, object] = {"id": "typed", "home": "/h", field: value}
    answer = register(daemon, **fields)
    assert (answer.status, answer.json) == (400, {"error": f"{field} must be a string"})


@proves("USER-14")
def test_user_id_is_taken_for_id_and_id_wins(daemon: Daemon) -> None:
    assert register(daemon, user_id="alias", home="/h").json["user_id"] == "alias"
    assert register(daemon, user_id="alias", id="real", home="/h").json["user_id"] == "real"


@proves("USER-15")
def test_id_and_home_are_trimmed(daemon: Daemon) -> None:
    answer = register(daemon, id="  trimmed\n", home="\t/home/trimmed ")
    assert answer.json == {"user_id": "trimmed", "home": "/home/trimmed", "created": True}


@proves("USER-16")
def test_allowed_paths_are_kept_until_given_anew(daemon: Daemon) -> None:
    register(daemon, id="allowing", home="/h", allowed_paths=["/a", "/b"])
    register(daemon, id="allowing", home="/h")
    item = listed(daemon, "allowing")
    assert item is not None
    assert item["allowedPaths"] == ["/a", "/b"]
    register(daemon, id="allowing", home="/h", allowed_paths=[])
    item = listed(daemon, "allowing")
    assert item is not None
    assert item["allowedPaths"] == []


@proves("USER-16", "HTTP-08")
@pytest.mark.parametrize("paths", ["/a", [1], {"a": 1}, ["relative"], [""]])
def test_allowed_paths_that_are_no_absolute_paths_are_refused(
    daemon: Daemon, paths: object
) -> None:
    answer = register(daemon, id="wrong-paths", home="/h", allowed_paths=paths)
    assert answer.status == 400
    assert answer.json["error"].startswith("allowed_paths must be ")
    assert listed(daemon, "wrong-paths") is None


@proves("USER-08", "USER-09", "USER-11")
def test_deleting_removes_the_record_and_leaves_the_files(daemon: Daemon, user: User) -> None:
    (user.home / "kept.md").write_text("kept", encoding="utf-8")
    answer = request(daemon.port, "DELETE", f"/users/{user.id}")
    assert answer.body == b'{"user_id":"%b","deleted":true}' % user.id.encode()
    assert listed(daemon, user.id) is None
    assert (user.home / "kept.md").read_text(encoding="utf-8") == "kept"
    again = request(daemon.port, "DELETE", f"/users/{user.id}")
    assert (again.status, again.json) == (200, {"user_id": user.id, "deleted": False})


@proves("USER-10")
def test_deleting_a_user_ends_its_sessions_and_what_they_run(daemon: Daemon, user: User) -> None:
    user.exec("/info")
    with Blocked(user, "file:busy") as blocked:
        request(daemon.port, "DELETE", f"/users/{user.id}")
        (_, head), _, _ = blocked.finish()
        assert head["ok"] is False
    assert user.sessions() == {}
    assert user.post(cmd="/info").status == 401


@proves("USER-22", "HTTP-02")
@pytest.mark.parametrize("user_id", ["a b", "ünïcode", "a/b", "50%", "..", "'\"<>"])
def test_any_id_can_be_registered_and_deleted(daemon: Daemon, user_id: str) -> None:
    register(daemon, id=user_id, home="/h")
    answer = request(
        daemon.port, "DELETE", f"/users/{quote(user_id, safe='')}", headers={"X-User-Id": "nobody"}
    )
    assert answer.json == {"user_id": user_id, "deleted": True}


@proves("USER-17")
def test_a_changed_home_drops_what_was_loaded_for_the_old_one(
    daemon: Daemon, user: User, tmp_path: Path
) -> None:
    user.exec('/set {kept} = "yes"')
    register(daemon, id=user.id, home=str(user.home))
    assert 'kept}="yes"' in user.exec("/info")[1]
    register(daemon, id=user.id, home=str(tmp_path))
    assert "kept" not in user.exec("/info")[1]


@proves("USER-12", "USER-18", "HEALTH-07")
def test_users_survive_a_restart(tmp_path: Path) -> None:
    running = Daemon(tmp_path)
    with running:
        register(running, id="first", home="/home/first", allowed_paths=["/x"])
        register(running, id="zweite ü", home="/home/zweite")
        before = request(running.port, "GET", "/users").body
    path = tmp_path / "data" / "users.json"
    text = path.read_text(encoding="utf-8")
    assert text == json.dumps(json.loads(text), indent=2, ensure_ascii=False) + "\n"
    assert [item["id"] for item in json.loads(text)] == ["first", "zweite ü"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with running:
        assert request(running.port, "GET", "/users").body == before
        assert running.output == [
            f"Loaded 2 user(s) from {path}\n",
            f"stringd listening on http://127.0.0.1:{running.port}\n",
        ]


@proves("USER-19")
def test_a_kill_at_any_moment_leaves_a_whole_registry(tmp_path: Path) -> None:
    """Many registrations are sent at once; the kill comes after another number of answers."""
    running = Daemon(tmp_path)
    path = tmp_path / "data" / "users.json"
    kept: set[str] = set()
    for round_ in range(5):
        running.start()
        known = {user["id"] for user in request(running.port, "GET", "/users").json["users"]}
        assert kept <= known
        for number in range(3 + round_ * 2):
            user_id = f"{round_}-{number}"
            register(running, id=user_id, home="/h")
            kept.add(user_id)
        _send_and_kill(running, f"{round_}-last")
        assert kept <= {user["id"] for user in json.loads(path.read_bytes())}
    assert not list(path.parent.glob("*.unreadable"))


def _send_and_kill(running: Daemon, prefix: str) -> None:
    """Leave many registrations under way when the process dies."""
    with Wire(running.port) as wire:
        bodies = [json.dumps({"id": f"{prefix}-{n}", "home": "/h"}).encode() for n in range(50)]
        wire.send(b"".join(message("POST", "/users", body) for body in bodies))
        wire.head()
        running.kill()


@proves("USER-20")
@pytest.mark.parametrize("content", [b"", b"{]", b"{}", b'[{"id":1}]', b"\xff\xfe", b"[" * 5000])
def test_an_unreadable_registry_means_no_users_and_is_kept_aside(
    tmp_path: Path, content: bytes
) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "users.json").write_bytes(content)
    with Daemon(tmp_path) as running:
        assert request(running.port, "GET", "/users").body == b'{"users":[]}'
        assert register(running, id="fresh", home="/h").json["created"] is True
    assert (data / "users.json.unreadable").read_bytes() == content


@proves("USER-13")
def test_the_data_directory_is_dot_stringd_where_the_daemon_was_started(tmp_path: Path) -> None:
    with Daemon(tmp_path, STRINGD_DATA_DIR="") as running:
        register(running, id="here", home="/h")
    path = tmp_path / ".stringd" / "users.json"
    assert json.loads(path.read_bytes())[0]["id"] == "here"
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


@proves("USER-19", "HTTP-08")
def test_a_change_that_cannot_be_stored_is_not_made(tmp_path: Path) -> None:
    with Daemon(tmp_path) as running:
        register(running, id="kept", home="/h")
        shutil.rmtree(running.data_dir)
        running.data_dir.write_text("a file stands where the directory was", encoding="utf-8")
        answer = register(running, id="lost", home="/h")
        assert answer.status == 500
        assert list(answer.json) == ["error"]
        assert [user["id"] for user in request(running.port, "GET", "/users").json["users"]] == [
            "kept"
        ]

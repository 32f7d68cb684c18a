"""`/sessions` and the names of topics."""

from urllib.parse import quote

import pytest

from tests.requirements import proves
from tests.support.daemon import Daemon
from tests.support.http import Answer, Blocked, User, request


def create(user: User, topic: object = None) -> Answer:
    return request(user.port, "POST", "/sessions", {"user_id": user.id, "topic": topic})


def delete(user: User, topic: str) -> Answer:
    return request(user.port, "DELETE", f"/sessions/{user.id}/{topic}")


@proves("SESSION-04", "SESSION-05")
def test_a_session_is_created_once_and_touched_afterwards(user: User) -> None:
    name = user.id.encode()
    first = create(user, "file:main")
    assert first.body == (
        b'{"user_id":"%b","topic":"file:main","topic_type":"file","created":true}' % name
    )
    assert create(user, "file:main").json == {**first.json, "created": False}


@proves("SESSION-01", "SESSION-02", "SESSION-03")
def test_the_listing_shows_each_session(user: User) -> None:
    create(user, "file:main")
    create(user, "app:weather:korea")
    answer = request(user.port, "GET", f"/sessions?user_id={user.id}")
    item = (
        b'{"user_id":"%b","topic":"%b","topic_type":"%b","executing":false,"queue_length":0,'
        b'"doc":null}'
    )
    name = user.id.encode()
    assert answer.body == b'{"sessions":[%b,%b]}' % (
        item % (name, b"file:main", b"file"),
        item % (name, b"app:weather:korea", b"app"),
    )


@proves("SESSION-01")
def test_without_a_user_the_listing_shows_everybody(
    daemon: Daemon, user: User, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = User(daemon.port, f"{user.id}-other", tmp_path_factory.mktemp("home"))
    create(user)
    create(other)
    for query in ("", "?user_id=", "?other=1"):
        sessions = request(user.port, "GET", f"/sessions{query}").json["sessions"]
        assert {user.id, other.id} <= {item["user_id"] for item in sessions}
    assert list(user.sessions()) == ["file:main"]
    assert request(user.port, "GET", "/sessions?user_id=nobody").json == {"sessions": []}


@proves("SESSION-01")
def test_the_user_in_the_query_is_decoded(daemon: Daemon, user: User) -> None:
    spaced = User(daemon.port, f"{user.id} ü&=+", user.home)
    create(spaced)
    answer = request(daemon.port, "GET", f"/sessions?user_id={quote(spaced.id)}")
    assert [item["user_id"] for item in answer.json["sessions"]] == [spaced.id]


@proves("SESSION-06", "SESSION-13", "HTTP-08")
@pytest.mark.parametrize("body", [b"{}", b"", b"junk", b'{"user_id":" ","topic":"a b"}', b"[1]"])
def test_without_a_user_id_the_answer_says_so(daemon: Daemon, body: bytes) -> None:
    answer = request(daemon.port, "POST", "/sessions", body)
    assert (answer.status, answer.body) == (400, b'{"error":"user_id required"}')


@proves("SESSION-07", "SESSION-13")
def test_an_unknown_user_is_named_before_the_topic_is_looked_at(daemon: Daemon) -> None:
    answer = request(daemon.port, "POST", "/sessions", {"user_id": "nobody", "topic": "a b"})
    assert (answer.status, answer.body) == (401, b'{"error":"Unknown user: nobody"}')


@proves("SESSION-08", "TOPIC-01")
@pytest.mark.parametrize(
    "topic",
    ["intro.md", "foo:bar", "file:", "app:a::b", "a b", ":x", "file:a/b", "File:x", "tab:x", "ü"],
)
def test_what_is_no_topic_is_quoted(user: User, topic: str) -> None:
    answer = create(user, topic)
    assert (answer.status, answer.json) == (400, {"error": f"Invalid topic: {topic}"})
    assert user.sessions() == {}


@proves("SESSION-08", "SSE-19")
@pytest.mark.parametrize("value", [1, [], {}, True])
@pytest.mark.parametrize("field", ["user_id", "topic"])
def test_a_field_of_another_type_is_named(user: User, field: str, value: object) -> None:
    fields: dict[str, object] = {"user_id": user.id, "topic": "file:main", field: value}
    answer = request(user.port, "POST", "/sessions", fields)
    assert (answer.status, answer.json) == (400, {"error": f"{field} must be a string"})


@proves("TOPIC-01", "TOPIC-02", "TOPIC-03")
@pytest.mark.parametrize(
    ("raw", "canonical", "kind"),
    [
        (None, "file:main", "file"),
        ("", "file:main", "file"),
        ("  ", "file:main", "file"),
        ("notes", "file:notes", "file"),
        (" file:docs ", "file:docs", "file"),
        ("web:x", "web:x", "web"),
        ("bash:dev", "bash:dev", "bash"),
        ("app:weather", "app:weather", "app"),
        ("app:weather:korea", "app:weather:korea", "app"),
        ("file:a:b", "file:a:b", "file"),
        ("A-b_9", "file:A-b_9", "file"),
    ],
)
def test_topics_are_canonical_in_every_answer(
    user: User, raw: str | None, canonical: str, kind: str
) -> None:
    answer = create(user, raw)
    expected = {"user_id": user.id, "topic": canonical, "topic_type": kind, "created": True}
    assert answer.json == expected
    assert list(user.sessions()) == [canonical]


@proves("SESSION-09", "SESSION-10", "SESSION-14")
@pytest.mark.parametrize("path", ["file:main", "main", "file%3Amain", "", "%20main%20"])
def test_a_session_is_closed_by_any_spelling_of_its_topic(user: User, path: str) -> None:
    create(user, "file:main")
    answer = delete(user, path)
    assert answer.body == (
        b'{"user_id":"%b","topic":"file:main","deleted":true}' % user.id.encode()
    )
    assert user.sessions() == {}
    assert delete(user, path).json == {**answer.json, "deleted": False}


@proves("SESSION-10")
def test_deleting_what_cannot_exist_is_no_error(user: User) -> None:
    answer = delete(user, "no%20topic")
    assert answer.json == {"user_id": user.id, "topic": "no topic", "deleted": False}
    stranger = request(user.port, "DELETE", "/sessions/nobody/file:main")
    assert stranger.json == {"user_id": "nobody", "topic": "file:main", "deleted": False}


@proves("SESSION-11")
@pytest.mark.parametrize("path", ["/sessions/", "/sessions/default", "/sessions"])
def test_a_path_without_a_topic_says_what_was_expected(daemon: Daemon, path: str) -> None:
    answer = request(daemon.port, "DELETE", path)
    assert answer.status == 400
    assert answer.body == b'{"error":"Expected /sessions/:user_id/:topic"}'


@proves("SESSION-12", "QUEUE-08")
def test_deleting_a_session_ends_what_it_runs(user: User) -> None:
    with Blocked(user) as blocked:
        assert user.sessions()["file:main"]["executing"] is True
        assert delete(user, "file:main").json["deleted"] is True
        (_, head), _, _ = blocked.finish()
        assert head["ok"] is False
    assert user.sessions() == {}


@proves("TOPIC-04")
def test_topics_of_different_users_are_different(
    daemon: Daemon, user: User, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = User(daemon.port, f"{user.id}-other", tmp_path_factory.mktemp("home"))
    user.exec('/set {mine} = "1"')
    assert "mine" in user.exec("/info")[1]
    assert "mine" not in other.exec("/info")[1]


@proves("TOPIC-05", "SESSION-09")
def test_a_topic_keeps_its_state_until_it_is_closed(user: User) -> None:
    user.exec('/set {x} = "1"', "file:a")
    assert '{x}="1"' in user.exec("/info", "a")[1]
    assert "{x}" not in user.exec("/info", "file:b")[1]
    delete(user, "a")
    assert "{x}" not in user.exec("/info", "file:a")[1]


@proves("SESSION-15", "SSE-26")
def test_an_open_document_shows_in_meta_and_in_the_listing(user: User) -> None:
    text = "---\ntitle: Home\n---\n\n# Hi\n\n<!-- #part -->\nText\n<!-- /part -->\n"
    (user.home / "index.md").write_text(text, encoding="utf-8")
    head, _ = user.exec("/open index.md")
    document = {"uri": (user.home / "index.md").as_uri(), "title": "Home", "current_block": None}
    assert dict(list(head["meta"].items())[:3]) == document
    assert user.sessions()["file:main"]["doc"] == document

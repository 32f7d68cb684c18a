"""What sessions remember across restarts and crashes, and what they forget."""

import json
import sqlite3
from pathlib import Path

import pytest

from stringd.runtime.topics.session import Session
from stringd.runtime.topics.store import SessionStore, restored
from stringd.runtime.topics.users import User
from stringd.wire.topic import parse_topic
from tests.requirements import proves
from tests.support.daemon import Daemon
from tests.support.http import request
from tests.support.person import Person
from tests.support.web import Asked, Reply, WebServer


def crash(daemon: Daemon) -> None:
    """End the daemon as a crash would, and start it again on the same port."""
    daemon.kill()
    daemon.start()


@proves("KEEP-01", "CF-11")
def test_a_topic_comes_back_as_it_was_after_a_crash(tmp_path: Path) -> None:
    with Daemon(tmp_path) as daemon:
        person = Person(daemon.port, "u", daemon.home)
        person.put("a.md", "# A\n\n[!nav:main](nav.md)\n\n## S\n\n[Docs](https://docs.test/x)\n")
        person.put("b.md", "---\ntitle: B\n---\n# B\n\n## T\n\nt [Long](https://long.test/)\n")
        person.put("nav.md", "[@b To B](b.md#t)\n")
        person.gets("/open a.md")
        person.gets("/open b.md#t")
        person.gets('/set {city} = "Seoul"')
        person.gets("/open nav.md", "file:other")
        before = person.gets("/info"), person.says("/info").meta, person.gets("/topics")
        crash(daemon)
        assert set(person.sessions()) == {"file:main", "file:other"}
        assert (person.gets("/info"), person.says("/info").meta, person.gets("/topics")) == before
        assert person.gets("/info @long") == "@long → https://long.test/"
        assert person.gets("/back").startswith("Back to a.md\n---\n[nav] main — /nav <name>")
        assert person.gets("/open @main.b") == "Opened b.md#t\n---\n## T\n\nt [Long][@long]"


def test_pages_that_are_gone_do_not_block_the_way_back(tmp_path: Path) -> None:
    with Daemon(tmp_path) as daemon:
        person = Person(daemon.port, "u", daemon.home)
        for name in ("a.md", "b.md", "c.md"):
            person.put(name, f"# {name}\n")
            person.gets(f"/open {name}")
        crash(daemon)
        (daemon.home / "b.md").unlink()
        refused = person.fails("/back")
        assert refused.text == (
            "ERROR(NOT_FOUND): File not found: b.md\n"
            "It is no longer part of the history; /back leads to the page before it."
        )
        assert person.gets("/back") == "Back to a.md\n---\n# a.md"


@proves("KEEP-01")
def test_menus_from_the_web_and_short_action_names_come_back_too(
    tmp_path: Path, web: WebServer
) -> None:
    web.answer = Reply("[@one One](one.md)\n", "text/markdown")
    action = "```act.greet\nCLI echo hello\n```\n"
    with Daemon(tmp_path) as daemon:
        person = Person(daemon.port, "u", daemon.home)
        person.put("a.md", f"[!nav:site]({web.url}/m.md)\n\n{action}")
        person.gets("/open a.md")
        crash(daemon)
        assert person.gets("/greet") == "hello"
        crash(daemon)
        assert person.gets("/nav site") == "Menu: site\n---\n[One][@site.one]"


@proves("KEEP-01", "WEB-06")
def test_a_page_of_a_manifest_is_still_behind_after_a_crash(tmp_path: Path, web: WebServer) -> None:
    files = [
        {"path": "string.md", "content": "[@g Guide](guide.md)\n"},
        {"path": "guide.md", "content": "# Guide\n"},
    ]

    def answer(asked: Asked) -> Reply:
        found = asked.target == "/app"
        return Reply(json.dumps({"files": files}), status=200 if found else 404)

    web.answer = answer
    with Daemon(tmp_path) as daemon:
        person = Person(daemon.port, "u", daemon.home)
        person.put("a.md", "# A\n")
        for target in (f"{web.url}/app", "@g", "~/a.md"):
            person.gets(f"/open {target}")
        crash(daemon)
        assert person.gets("/back") == f"Back to {web.url}/guide.md\n---\n# Guide"


@proves("KEEP-01")
def test_where_a_directory_was_opened_survives_and_so_does_what_was_read(tmp_path: Path) -> None:
    with Daemon(tmp_path) as daemon:
        person = Person(daemon.port, "u", daemon.home)
        person.put("notes/a.md", "old\n")
        person.gets("/open notes")
        person.gets("/edit a.md")
        crash(daemon)
        assert person.gets("/ls") == "Listing notes/\n---\n  a.md"
        person.put("notes/a.md", "changed meanwhile\n")
        assert person.fails("/edit a.md\nmine").code == "CONFLICT"


def test_an_open_file_that_changed_while_the_daemon_was_away_is_not_overwritten(
    tmp_path: Path,
) -> None:
    with Daemon(tmp_path) as daemon:
        person = Person(daemon.port, "u", daemon.home)
        person.put("a.md", "mine\n")
        person.gets("/open a.md")
        crash(daemon)
        person.put("a.md", "theirs\n")
        assert person.fails("/write a.md\nlost").code == "CONFLICT"
        assert person.read("a.md") == b"theirs\n"


@proves("KEEP-02")
def test_an_open_web_page_needs_no_network_to_come_back(tmp_path: Path) -> None:
    found = {
        "/p": Reply("# P\n\n[!nav:m](n)\n\n[!include:i](i)\n\n[@x X](./x)\n", "text/markdown"),
        "/n": Reply("[@y Y](./y)\n", "text/markdown"),
        "/i": Reply("<!-- #i -->\nIncluded.\n<!-- /i -->\n", "text/markdown"),
        "/h": Reply("<main><h1>H</h1></main>", "text/html"),
    }

    def answer(asked: Asked) -> Reply:
        return found.get(asked.target, Reply(status=404))

    with Daemon(tmp_path) as daemon:
        person = Person(daemon.port, "u", daemon.home)
        with WebServer(answer) as web:
            person.gets(f"/open {web.url}/p", "web:a")
            person.gets(f"/open {web.url}/h", "web:b")
            url = web.url
        crash(daemon)
        assert person.gets("/open #", "web:a").endswith("# P\n\n\nIncluded.\n\n[X][@x]")
        assert person.gets("/nav m", "web:a") == "Menu: m\n---\n[Y][@m.y]"
        assert person.gets("/info @x", "web:a") == "@x → ./x"
        assert person.fails("/open @x", "web:a").message.startswith(
            f"Network error fetching {url}/x"
        )
        assert person.gets("/source", "web:b").endswith("\n---\n<main><h1>H</h1></main>")
        assert person.fails("/refresh", "web:a").code == "LOAD_ERROR"


def test_a_page_too_large_to_keep_says_how_to_get_it_back(tmp_path: Path) -> None:
    with Daemon(tmp_path) as daemon, WebServer(Reply("word " * 300_000, "text/plain")) as web:
        person = Person(daemon.port, "u", daemon.home)
        person.gets(f"/open {web.url}/p")
        crash(daemon)
        assert f"url:       {web.url}/p" in person.gets("/info")
        refused = person.fails("/source")
        assert refused.code == "LOAD_ERROR"
        assert refused.message.endswith("Recovery: /refresh loads it again.")
        assert person.gets("/refresh").startswith(f"Refreshed {web.url}/p\n---\nword word")


@proves("KEEP-04")
def test_a_document_deleted_meanwhile_is_named(tmp_path: Path) -> None:
    with Daemon(tmp_path) as daemon:
        person = Person(daemon.port, "u", daemon.home)
        path = person.put("a.md", "# A\n")
        person.gets("/open a.md")
        person.gets('/set {x} = "1"')
        path.unlink()
        crash(daemon)
        assert person.gets("/info") == (
            "Session info\n---\nfile:      a.md\ncwd:       ~/\nhistory:   0 entries\n"
            'vars:      {x}="1"\n\nWarnings:\n'
            "  File not found: a.md"
        )
        assert person.fails("/source").text == "ERROR(NOT_FOUND): File not found: a.md"
        assert person.gets("/close") == "Closed: a.md"


@proves("KEEP-03")
def test_closing_and_deleting_leave_nothing_on_disk(tmp_path: Path) -> None:
    secret = "unforgettable-71c2"
    with Daemon(tmp_path) as daemon:
        person = Person(daemon.port, "u", daemon.home)
        person.put("a.md", f"# {secret}\n")
        for topic in ("file:closed", "file:deleted", "file:ended"):
            person.gets(f"/set {{token}} = {secret}", topic)
            person.gets("/open a.md", topic)
            person.gets("/edit a.md\n# x", topic)
            person.put("a.md", f"# {secret}\n")
        assert any(secret.encode() in data for data in _stored(daemon))
        person.gets("/close", "file:closed")
        person.gets("/close file:ended")
        path = f"/sessions/{person.id}/file:deleted"
        assert request(daemon.port, "DELETE", path).status == 200
        assert [data for data in _stored(daemon) if secret.encode() in data] == []
        crash(daemon)
        assert set(person.sessions()) == {"file:closed", "file:main"}
        assert person.gets("/set", "file:closed") == "No variables set."


def _stored(daemon: Daemon) -> list[bytes]:
    return [path.read_bytes() for path in daemon.data_dir.rglob("*") if path.is_file()]


@proves("KEEP-03")
def test_removing_a_user_forgets_its_topics(tmp_path: Path) -> None:
    with Daemon(tmp_path) as daemon:
        person = Person(daemon.port, "u", daemon.home)
        person.gets("/set {token} = unforgettable-71c2")
        person.gets("/write a.md\nx")
        assert request(daemon.port, "DELETE", "/users/u").status == 200
        assert not (daemon.data_dir / "undo/u").exists()
        assert [data for data in _stored(daemon) if b"unforgettable" in data] == []
        again = Person(daemon.port, "u", daemon.home)
        assert again.gets("/set") == "No variables set."
        crash(daemon)
        assert again.gets("/set") == "No variables set."


@proves("CF-10")
def test_first_contact_makes_a_session_that_stays(tmp_path: Path) -> None:
    with Daemon(tmp_path) as daemon:
        person = Person(daemon.port, "u", daemon.home)
        assert person.sessions() == {}
        person.gets("/info", "file:project")
        assert set(person.sessions()) == {"file:project"}
        crash(daemon)
        assert set(person.sessions()) == {"file:project"}


def test_a_database_that_cannot_be_read_is_put_aside(tmp_path: Path) -> None:
    daemon = Daemon(tmp_path)
    daemon.data_dir.mkdir()
    (daemon.data_dir / "sessions.db").write_bytes(b"no database" * 1000)
    with daemon:
        person = Person(daemon.port, "u", daemon.home)
        person.gets('/set {x} = "1"')
        crash(daemon)
        assert person.gets("/set") == 'Variables\n---\n{x} = "1"'
    assert (daemon.data_dir / "sessions.db.unreadable").read_bytes().startswith(b"no database")


USER = User("u", "/home/u")
TOPIC = parse_topic("main")


@pytest.mark.parametrize("state", [b"", b"{", b"\xff\xfe", b'{"history": 5}', b"[]"])
def test_a_row_that_cannot_be_read_is_an_empty_session(state: bytes) -> None:
    session = restored(USER, TOPIC, state)
    assert (session.location, len(session.history), session.variables) == (None, 0, {})


def test_rows_of_an_earlier_version_are_read() -> None:
    old = (
        b'{"location":{"uri":"file:///home/u/a.md","block":"b"},'
        b'"history":[{"uri":"https://x.test/"}],"variables":{"k":"v"}}'
    )
    session = restored(USER, TOPIC, old)
    assert session.location is not None
    assert (session.location.uri, session.location.block) == ("file:///home/u/a.md", "b")
    assert [place.uri for place in session.history] == ["https://x.test/"]
    assert session.variables == {"k": "v"}


async def saved(store: SessionStore, session: Session) -> None:
    writing = store.save(session)
    assert writing is not None
    await writing


@pytest.mark.anyio
async def test_nothing_is_written_when_nothing_changed(tmp_path: Path) -> None:
    store = SessionStore(tmp_path)
    session = Session(USER, TOPIC)
    await saved(store, session)
    with sqlite3.connect(tmp_path / "sessions.db") as database:
        database.execute("DELETE FROM sessions")
    database.close()
    assert store.save(session) is None
    assert list(store.rows()) == []
    session.variables["k"] = "v"
    await saved(store, session)
    assert [row[:2] for row in store.rows()] == [("u", "file:main")]
    store.close()


@pytest.mark.anyio
async def test_files_a_session_has_seen_come_back_in_their_order_until_it_is_forgotten(
    tmp_path: Path,
) -> None:
    store = SessionStore(tmp_path)
    session = Session(USER, TOPIC)
    for name in ("a", "b", "c"):
        session.seen_files.saw(Path(name), name.encode())
    await saved(store, session)
    session.seen_files.saw(Path("a"), b"changed")
    session.seen_files.forget(Path("b"))
    await saved(store, session)
    assert list(store.seen("u", "file:main")) == [("c", b"c"), ("a", b"changed")]
    await store.delete("u", TOPIC)
    assert list(store.seen("u", "file:main")) == []
    store.close()

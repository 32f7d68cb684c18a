"""One step back per topic."""

import json
import stat
from pathlib import Path

import pytest

from stringd.runtime.topics import undo_store
from stringd.runtime.topics.session import Session
from stringd.runtime.topics.users import User
from stringd.wire.topic import parse_topic
from tests.requirements import proves
from tests.support.daemon import Daemon
from tests.support.person import Person


@proves("CMD-24", "FILE-12")
def test_each_topic_takes_its_own_last_edit_back(person: Person) -> None:
    person.put("a.md", "a\n")
    person.put("sub/b.md", "b1\nb2")
    person.gets("/write a.md\nchanged")
    person.gets("/write sub/b.md\nchanged", "file:other")
    assert person.gets("/undo") == "Undo: reverted a.md (2 lines)"
    assert person.gets("/undo", "file:other") == "Undo: reverted sub/b.md (2 lines)"
    assert person.read("a.md") == b"a\n"
    assert person.read("sub/b.md") == b"b1\nb2"
    assert person.fails("/undo").text == "ERROR(NOT_FOUND): Nothing to undo."


def test_a_mode_given_since_the_edit_stays(person: Person) -> None:
    script = person.put("run.sh", "old\n")
    person.gets("/write run.sh\nnew")
    script.chmod(0o755)
    person.gets("/undo")
    assert person.read("run.sh") == b"old\n"
    assert stat.S_IMODE(script.stat().st_mode) == 0o755


def test_a_new_file_is_deleted_again(person: Person) -> None:
    person.gets("/write new/a.md\nx")
    assert person.gets("/undo") == "Undo: deleted new/a.md (was newly created)"
    assert not (person.home / "new/a.md").exists()


@proves("DEF-23")
def test_a_file_that_was_empty_is_empty_again(person: Person) -> None:
    person.put("a.md")
    person.gets("/write a.md\nx")
    assert person.gets("/undo") == "Undo: reverted a.md (1 lines)"
    assert person.read("a.md") == b""


def test_topics_with_long_names_have_their_own_steps_too(person: Person) -> None:
    first, second = f"file:{'n' * 400}-1", f"file:{'n' * 400}-2"
    person.gets("/write a.md\nx", first)
    person.gets("/write b.md\nx", second)
    assert person.gets("/undo", first) == "Undo: deleted a.md (was newly created)"
    assert person.gets("/undo", second) == "Undo: deleted b.md (was newly created)"


def test_there_is_one_level(person: Person) -> None:
    for text in ("one", "two", "three"):
        person.gets(f"/write a.md\n{text}")
    assert person.gets("/undo") == "Undo: reverted a.md (1 lines)"
    assert person.read("a.md") == b"two"
    assert person.fails("/undo").code == "NOT_FOUND"


@proves("FILE-12")
def test_a_file_that_changed_since_is_not_reverted(person: Person) -> None:
    person.put("a.md", "old\n")
    person.gets("/write a.md\nmine")
    person.put("a.md", "by another\n")
    refused = person.fails("/undo")
    assert refused.code == "CONFLICT"
    assert refused.message.split("\n")[0] == (
        "Refusing to undo a.md: file changed since this topic's last edit."
    )
    (person.home / "a.md").unlink()
    assert person.fails("/undo").code == "CONFLICT"
    assert not (person.home / "a.md").exists()


def test_a_failed_edit_keeps_the_earlier_step(person: Person) -> None:
    person.put("a.md", "old\n")
    person.gets("/write a.md\nmine")
    assert person.fails("/edit no/such/place.md\nx").code == "INTERNAL_ERROR"
    person.fails("/edit a.md#none\nx")
    assert person.gets("/undo") == "Undo: reverted a.md (2 lines)"


def test_an_undone_edit_can_be_edited_again(person: Person) -> None:
    person.put("a.md", "old\n")
    person.gets("/edit a.md\nmine")
    person.gets("/undo")
    person.gets("/edit a.md\nmine again")
    assert person.read("a.md") == b"mine again"


@proves("FILE-12")
def test_the_step_back_outlives_the_daemon(tmp_path: Path) -> None:
    with Daemon(tmp_path) as daemon:
        person = Person(daemon.port, "ann b", tmp_path / "home")
        path = person.put("a.md", "old\n")
        person.gets("/write a.md\nmine")
        record = daemon.data_dir / "undo/ann%20b/file%3Amain/last.json"
        kept = json.loads(record.read_text())
        assert kept["path"] == str(path)
        assert (kept["existed"], kept["content"]) == (True, "old\n")
        assert stat.S_IMODE(record.stat().st_mode) == 0o600
        daemon.kill()
        daemon.start()
        assert person.gets("/undo") == "Undo: reverted a.md (2 lines)"
        assert not record.exists()
    assert path.read_bytes() == b"old\n"


@proves("FILE-12")
@pytest.mark.parametrize("written", [False, True])
def test_a_crash_between_the_step_and_the_file_loses_no_step(tmp_path: Path, written: bool) -> None:
    with Daemon(tmp_path) as daemon:
        person = Person(daemon.port, "u", tmp_path / "home")
        path = person.put("a.md", "old\n")
        person.gets("/write a.md\nmine")
        last = daemon.data_dir / "undo/u/file%3Amain/last.json"
        before = last.read_bytes()
        person.gets("/write a.md\nnext")
        last.rename(last.with_name("next.json"))
        last.write_bytes(before)
        if not written:
            path.write_bytes(b"mine")
        assert person.gets("/undo") == f"Undo: reverted a.md ({1 if written else 2} lines)"
        assert path.read_bytes() == (b"mine" if written else b"old\n")
        assert person.fails("/undo").text == "ERROR(NOT_FOUND): Nothing to undo."


@proves("KEEP-03")
def test_closing_a_topic_forgets_its_step_back(person: Person) -> None:
    person.put("a.md", "old\n")
    person.gets("/open a.md")
    person.gets("/write a.md\nmine")
    person.gets("/close")
    assert person.fails("/undo").text == "ERROR(NOT_FOUND): Nothing to undo."


@pytest.mark.parametrize("name", ["..", ".", "a/b", "../x", "a b"])
def test_no_user_reaches_out_of_the_records(tmp_path: Path, name: str) -> None:
    session = Session(User(name, "/"), parse_topic("main"))
    content, encoded = undo_store.content_fields(b"\xff")
    record = undo_store.UndoRecord(1, name, "file:main", "/x", True, content, encoded, "", "")
    with undo_store.remembered(tmp_path, session, record):
        pass
    found = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert [path.parent.parent.parent for path in found] == [tmp_path / "undo"]
    (restored,) = undo_store.steps(tmp_path, session)
    assert restored.previous() == b"\xff"
    undo_store.forget_user(tmp_path, name)
    assert list((tmp_path / "undo").iterdir()) == []

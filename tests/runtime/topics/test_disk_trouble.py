"""Sessions on a disk that is full, locked or damaged."""

import json
import sqlite3
from pathlib import Path

import pytest

from stringd.system.damage import kept_aside
from tests.support.daemon import Daemon
from tests.support.http import Wire, request
from tests.support.person import Person
from tests.support.small_disk import small_disk


def test_a_locked_database_holds_up_only_those_who_change_something(tmp_path: Path) -> None:
    with Daemon(tmp_path) as daemon:
        person = Person(daemon.port, "u", daemon.home)
        person.gets('/set {x} = "1"')
        other = sqlite3.connect(daemon.data_dir / "sessions.db", isolation_level=None)
        try:
            other.execute("BEGIN EXCLUSIVE")
            with Wire(daemon.port) as wire:
                wire.send(person.message('/set {x} = "2"'))
                while not person.sessions()["file:main"]["executing"]:
                    pass
                # Had the command blocked the daemon, this would come after it had given up.
                assert request(daemon.port, "GET", "/health").json["ok"] is True
                other.execute("ROLLBACK")
                assert b"ERROR" not in wire.receive().body
        finally:
            other.close()
        daemon.kill()
        daemon.start()
        assert person.gets("/set") == 'Variables\n---\n{x} = "2"'


def test_a_command_that_cannot_be_saved_fails_says_so_and_is_saved_with_room(
    tmp_path: Path,
) -> None:
    daemon = Daemon(tmp_path)
    with small_disk(daemon) as disk, daemon:
        person = Person(daemon.port, "u", daemon.home)
        person.gets('/set {x} = "1"')
        disk.fill()
        said = person.fails('/set {x} = "' + "2" * 20_000 + '"')
        assert said.code == "INTERNAL_ERROR"
        assert said.message.startswith("Not saved: ")
        answer = request(
            daemon.port, "POST", "/users", json.dumps({"id": "v", "home": str(tmp_path)}).encode()
        )
        assert answer.status == 500
        assert "No space left" in answer.json["error"]
        disk.clear()
        person.gets('/set {y} = "3"')
        daemon.kill()
        daemon.start()
        assert person.gets("/set").endswith('{y} = "3"')
        assert "2222" in person.gets("/set")


def test_a_daemon_starts_or_says_in_one_sentence_why_not_on_a_full_disk(tmp_path: Path) -> None:
    daemon = Daemon(tmp_path)
    with small_disk(daemon) as disk:
        disk.fill()
        with pytest.raises(AssertionError, match="did not start"):
            daemon.start()
        assert daemon.stop() == 1
        (said,) = daemon.output
        assert said.startswith("stringd: ")
        assert "STRINGD_DATA_DIR" in said
        disk.clear()
        with daemon:
            assert request(daemon.port, "GET", "/health").json["ok"] is True


def test_a_locked_database_is_not_taken_for_a_damaged_one(tmp_path: Path) -> None:
    daemon = Daemon(tmp_path)
    with daemon:
        Person(daemon.port, "u", daemon.home).gets('/set {x} = "1"')
    other = sqlite3.connect(daemon.data_dir / "sessions.db", isolation_level=None)
    try:
        other.execute("PRAGMA locking_mode = EXCLUSIVE")
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(AssertionError, match="database is locked"):
            daemon.start()
        daemon.stop()
    finally:
        other.close()
    assert not list(daemon.data_dir.glob("*.unreadable"))
    with daemon:
        assert "{x}" in Person(daemon.port, "u", daemon.home).gets("/set")


def test_what_can_be_read_of_a_damaged_database_comes_back(tmp_path: Path) -> None:
    daemon = Daemon(tmp_path)
    with daemon:
        person = Person(daemon.port, "u", daemon.home)
        for number in range(40):
            person.gets('/set {x} = "' + "y" * 3000 + '"', f"file:t{number}")
    path = daemon.data_dir / "sessions.db"
    content = bytearray(path.read_bytes())
    content[-20_000:-10_000] = b"\xff" * 10_000
    path.write_bytes(content)
    with daemon:
        assert len(person.sessions()) > 0
        assert "y" * 3000 in person.gets("/set", "file:t0")
    assert [each.name for each in kept_aside(daemon.data_dir)] == ["sessions.db.unreadable"]

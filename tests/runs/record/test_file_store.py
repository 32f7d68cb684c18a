"""Runs on disk: appended, torn, repaired, replayed."""

import asyncio
import os
import threading
from pathlib import Path

import pytest

from stringd.runs.errors import NotRecordedError
from stringd.runs.record.events import Ending, RunCompleted, RunStarted
from stringd.runs.record.file_store import FileRunStore
from stringd.system.clock import timestamp
from tests.requirements import proves
from tests.support.daemon import WAIT_SECONDS


def started(name: str = "S", ts: str | None = None) -> RunStarted:
    return RunStarted(ts=ts or timestamp(), strategy_path="/s.yaml", strategy_name=name, cwd="/")


def ended() -> RunCompleted:
    return RunCompleted(ts=timestamp(), status="completed")


@pytest.fixture
def store(tmp_path: Path) -> FileRunStore:
    return FileRunStore(tmp_path / "runs")


def test_files_are_for_their_owner_alone(store: FileRunStore, tmp_path: Path) -> None:
    store.append("r", started())
    assert (tmp_path / "runs" / "r.jsonl").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "runs").stat().st_mode & 0o777 == 0o700
    store.close()


@proves("RUN-22")
def test_a_torn_line_is_ended_before_the_next_one(store: FileRunStore, tmp_path: Path) -> None:
    store.append("r", started())
    store.close()
    path = tmp_path / "runs" / "r.jsonl"
    path.write_bytes(path.read_bytes() + b'{"type":"run_compl')
    again = FileRunStore(tmp_path / "runs")
    assert again.repair() == ["r"]
    assert [type(event).__name__ for event in again.timeline("r")] == [
        "RunStarted",
        "RunCompleted",
    ]
    assert again.repair() == ["r"]
    assert len(again.timeline("r")) == 2
    assert [each.status for each in again.overviews()] == ["error"]
    again.close()


def test_a_run_that_was_killed_before_its_first_event_never_was(
    store: FileRunStore, tmp_path: Path
) -> None:
    for run_id in ("never", "emptied"):
        (tmp_path / "runs").mkdir(exist_ok=True)
        (tmp_path / "runs" / f"{run_id}.jsonl").touch()
        store.save_selection(run_id, [])
    store.append_broadcast("emptied", b'{"seq":1}')
    assert [each.run_id for each in store.overviews()] == ["emptied"]
    assert store.repair() == []
    assert sorted(path.name for path in (tmp_path / "runs").iterdir()) == [
        "emptied.config.json",
        "emptied.jsonl",
        "events",
    ]
    assert store.claim("never")


def test_finished_runs_are_not_repaired_and_the_newest_is_listed_first(store: FileRunStore) -> None:
    store.append("a", started("A", "2026-01-01T00:00:00.000Z"))
    store.append("a", ended())
    store.append("b", started("B", "2026-01-02T00:00:00.000Z"))
    store.append("b", ended())
    assert store.repair() == []
    assert [each.run_id for each in store.overviews()] == ["b", "a"]
    store.append("a", started("A2"))
    assert [(each.run_id, each.status) for each in store.overviews()] == [
        ("a", "running"),
        ("b", "completed"),
    ]
    store.close()


@proves("RUN-19")
def test_broadcasts_are_found_by_number_whatever_their_size(store: FileRunStore) -> None:
    assert store.last_seq("r") == 0
    for seq in range(1, 6):
        store.append_broadcast("r", b'{"type":"x","seq":%d}' % seq)
    assert store.last_seq("r") == 5
    assert list(store.broadcasts("r", 4)) == [
        (4, b'{"type":"x","seq":4}'),
        (5, b'{"type":"x","seq":5}'),
    ]
    store.append_broadcast("r", b'{"seq":6,"text":"%b"}' % (b"x" * 200_000))
    assert store.last_seq("r") == 6
    store.close()


@proves("RUN-37")
def test_only_completed_runs_past_the_newest_have_surplus_events(
    store: FileRunStore, tmp_path: Path
) -> None:
    for age, (name, status) in enumerate(
        [("new", "completed"), ("failed", "error"), ("old", "completed"), ("short", "completed")]
    ):
        store.append(name, started())
        ending: Ending = "error" if status == "error" else "completed"
        store.append(name, RunCompleted(ts=timestamp(), status=ending))
        for seq in range(1, 2 if name == "short" else 4):
            store.append_broadcast(name, b'{"seq":%d}' % seq)
        file = tmp_path / "runs" / "events" / f"{name}.jsonl"
        os.utime(file, (1_000_000 - age, 1_000_000 - age))
    (tmp_path / "runs" / "events" / "folder.jsonl").mkdir()
    os.utime(tmp_path / "runs" / "events" / "folder.jsonl", (0, 0))
    (tmp_path / "runs" / "events" / "nowhere.jsonl").symlink_to("gone")
    assert store.surplus(keep=1) == ["old"]
    assert store.surplus(keep=3) == []
    store.release("old")
    store.forget_broadcasts("old")
    assert list(store.broadcasts("old", 1)) == [(3, b'{"seq":3}')]
    assert store.last_seq("old") == 3
    assert store.surplus(keep=1) == []
    store.forget_broadcasts("nobody")
    store.close()


@pytest.mark.anyio
async def test_more_runs_than_open_files_are_written_and_synced_alike(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = FileRunStore(tmp_path / "runs", max_open=4)

    async def write(run_id: str) -> None:
        for _ in range(3):
            store.append(run_id, started())
            store.append_broadcast(run_id, b'{"seq":1}')
            await store.sync(run_id)

    names = [f"r{number}" for number in range(40)]
    await asyncio.gather(*map(write, names))
    assert [len(store.timeline(name)) for name in names] == [3] * 40
    assert caplog.text == ""
    store.close()


def test_what_cannot_be_written_is_raised_and_broadcasts_are_logged_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    blocked = tmp_path / "runs"
    blocked.write_text("a file where the directory should be", "utf-8")
    store = FileRunStore(blocked)
    with pytest.raises(NotRecordedError, match="its start"):
        store.append("r", started())
    with pytest.raises(NotRecordedError):
        store.claim("r")
    with pytest.raises(OSError, match="runs"):
        store.save_selection("r", [])
    for _ in range(3):
        store.append_broadcast("r", b"{}")
    assert store.timeline("r") == []
    assert caplog.text.count("cannot keep") == 1
    store.close()


@pytest.mark.anyio
async def test_sync_waits_for_the_disk(
    store: FileRunStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, written = threading.Event(), threading.Event()
    files: list[Path] = []

    def slow_disk(fd: int) -> None:
        files.append(Path(f"/proc/self/fd/{fd}").readlink())
        asked.set()
        assert written.wait(WAIT_SECONDS)

    monkeypatch.setattr(os, "fdatasync", slow_disk)
    store.append("r", started())
    syncing = asyncio.create_task(store.sync("r"))
    assert await asyncio.to_thread(asked.wait, WAIT_SECONDS)
    assert not syncing.done()
    written.set()
    await syncing
    assert files == [tmp_path / "runs" / "r.jsonl"]
    store.close()


@pytest.mark.anyio
async def test_there_is_nothing_to_wait_for_of_an_unknown_run(
    store: FileRunStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    files: list[int] = []
    monkeypatch.setattr(os, "fdatasync", files.append)
    await store.sync("nobody")
    store.close()
    assert files == []

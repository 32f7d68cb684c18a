"""The event log."""

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stringd.server import log as log_module
from stringd.server.log import EventLog
from tests.support.daemon import Daemon
from tests.support.http import request


def lines(directory: Path, name: str = "stringd.log") -> list[str]:
    return (directory / name).read_text(encoding="utf-8").splitlines()


def test_a_line_has_a_time_a_level_an_event_and_its_fields(tmp_path: Path) -> None:
    log = EventLog(tmp_path)
    log.info("exec", userId="a b", ok=True, code=None, durationMs=1.5)
    log.error("internal", error='say "hi"\n')
    log.close()
    first, second = lines(tmp_path)
    assert re.fullmatch(
        r"\[\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z\] INFO  "
        r'exec userId="a b" ok=true durationMs=1\.5',
        first,
    )
    assert second.endswith(r'ERROR internal error="say \"hi\"\n"')


def test_as_json_every_line_is_an_object_whose_values_keep_their_types(tmp_path: Path) -> None:
    log = EventLog(tmp_path, as_json=True)
    log.info("exec", userId='a "b"\n', ok=True, code=None, durationMs=1.5)
    log.error("internal", error=ValueError("bad"))
    log.close()
    first, second = map(json.loads, lines(tmp_path))
    time = first.pop("time")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", time)
    assert first == {
        "level": "info",
        "event": "exec",
        "userId": 'a "b"\n',
        "ok": True,
        "durationMs": 1.5,
    }
    assert (second["level"], second["error"]) == ("error", "bad")


def test_a_log_of_errors_leaves_out_what_succeeds(tmp_path: Path) -> None:
    log = EventLog(tmp_path, errors_only=True)
    assert not log.enabled
    log.info("exec", userId="a")
    log.error("internal", error="bad")
    log.close()
    (only,) = lines(tmp_path)
    assert only.endswith("ERROR internal error=bad")


def test_a_daemon_may_write_errors_alone(tmp_path: Path) -> None:
    with Daemon(tmp_path, STRINGD_LOG="1", STRINGD_LOG_LEVEL="error") as daemon:
        request(daemon.port, "GET", "/users")
    assert lines(daemon.data_dir / "logs") == []


def test_a_daemon_writes_the_log_that_its_settings_ask_for(tmp_path: Path) -> None:
    with Daemon(tmp_path, STRINGD_LOG="1", STRINGD_LOG_FORMAT="json") as daemon:
        request(daemon.port, "GET", "/users")
    events = [json.loads(line)["event"] for line in lines(daemon.data_dir / "logs")]
    assert (events[0], events[-1]) == ("server.start", "server.stop")
    assert "request" in events


def test_the_log_is_private(tmp_path: Path) -> None:
    EventLog(tmp_path / "logs").close()
    assert (tmp_path / "logs" / "stringd.log").stat().st_mode & 0o777 == 0o600


def test_without_a_directory_nothing_is_written() -> None:
    log = EventLog(None)
    assert not log.enabled
    log.info("exec", userId="a")
    log.close()


def test_a_full_log_is_kept_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_module, "MAX_LOG_BYTES", 200)
    log = EventLog(tmp_path)
    for number in range(12):
        log.info("request", number=number)
    log.close()
    kept = lines(tmp_path, "stringd.log.1") + lines(tmp_path)
    assert [int(line.rpartition("=")[2]) for line in kept] == list(range(12 - len(kept), 12))
    assert {path.name for path in tmp_path.iterdir()} == {"stringd.log", "stringd.log.1"}


@given(st.text(), st.text())
def test_no_value_can_forge_a_line(
    tmp_path_factory: pytest.TempPathFactory, first: str, second: str
) -> None:
    directory = tmp_path_factory.mktemp("log")
    log = EventLog(directory)
    log.info("event", a=first, b=second)
    log.close()
    text = (directory / "stringd.log").read_text(encoding="utf-8")
    assert text.count("\n") == 1
    assert len(text.splitlines()) == 1
    assert all(c.isprintable() for c in text.removesuffix("\n"))

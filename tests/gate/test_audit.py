import json
import os
import stat
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stringd.gate import audit
from stringd.gate.audit import GENESIS, HEAD_KEPT, AuditLog, head_path, verify
from stringd.gate.errors import TroubleError
from tests.gate.support import PATIENCE
from tests.requirements import proves

GOLDEN = Path(__file__).parent / "golden" / "audit-1.jsonl"


def written(path: Path, count: int = 4) -> Path:
    log = AuditLog(path)
    for number in range(count):
        log.append("received", {"id": str(number), "reason": "ünïcode \x1b"}, sync=True)
    log.close()
    return path


def test_the_format_is_that_of_the_golden_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Logs written by this version must stay readable by every later one."""
    monkeypatch.setattr("stringd.gate.audit.time.time_ns", lambda: 1_771_000_000_123_456_789)
    path = tmp_path / "log"
    log = AuditLog(path)
    log.append("started", {"version": "1", "pid": 7})
    log.append("received", {"id": "a", "pipeline": [["echo", "ü"]], "privileged": True})
    log.append("decided", {"id": "a", "decision": "approved", "by": "terminal"}, sync=True)
    log.append("finished", {"id": "a", "exit_codes": [0], "stdout_bytes": 3})
    log.close()
    assert path.read_bytes() == GOLDEN.read_bytes()
    assert verify(GOLDEN) == (4, None)


@proves("GATE-AUD-01")
def test_a_log_is_private_and_its_chain_holds(tmp_path: Path) -> None:
    path = written(tmp_path / "new" / "log")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert verify(path) == (4, None)
    first = json.loads(path.read_bytes().splitlines()[0])
    assert (first["seq"], first["prev"]) == (1, GENESIS)


def test_a_later_gate_continues_the_chain(tmp_path: Path) -> None:
    path = written(tmp_path / "log")
    assert verify(written(path)) == (8, None)


def test_two_gates_may_write_one_log(tmp_path: Path) -> None:
    path = tmp_path / "log"
    logs = [AuditLog(path) for _ in range(3)]

    def write(log: AuditLog) -> None:
        for number in range(20):
            log.append("received", {"id": str(number)})

    threads = [threading.Thread(target=write, args=(log,)) for log in logs for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    for log in logs:
        log.close()
    assert verify(path) == (120, None)


def change(lines: list[bytes]) -> list[bytes]:
    return [lines[0], lines[1].replace(b'"id":"1"', b'"id":"9"'), *lines[2:]]


def reseal(lines: list[bytes]) -> list[bytes]:
    record = json.loads(lines[1]) | {"id": "9"}
    record["hash"] = audit.seal(record)
    return [lines[0], audit.encode(record), *lines[2:]]


@pytest.mark.parametrize(
    ("tamper", "line"),
    [
        (change, 2),
        (reseal, 3),
        (lambda lines: [lines[0], *lines[2:]], 2),
        (lambda lines: lines[1:], 1),
        (lambda lines: [lines[1], lines[0], *lines[2:]], 1),
        (lambda lines: [*lines[:2], lines[1], *lines[2:]], 3),
        (lambda lines: [*lines[:2], b"garbage\n", *lines[2:]], 4),
        (lambda lines: [*lines, b"cut off"], 5),
        (lambda lines: [*lines[:2], b"\n", *lines[2:]], 4),
        (lambda lines: [*lines, b"\n"], 5),
        (lambda lines: [lines[0].replace(b",", b", ", 1), *lines[1:]], 1),
    ],
)
@proves("GATE-AUD-01")
def test_tampering_is_found_at_its_first_record(
    tmp_path: Path, tamper: Callable[[list[bytes]], list[bytes]], line: int
) -> None:
    path = written(tmp_path / "log")
    path.write_bytes(b"".join(tamper(path.read_bytes().splitlines(keepends=True))))
    broken = verify(path).broken
    assert broken is not None
    assert broken.line == line


@settings(max_examples=60)
@given(st.data())
def test_any_flipped_bit_is_found(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    path = written(tmp_path_factory.mktemp("a") / "log")
    content = bytearray(path.read_bytes())
    at = data.draw(st.integers(0, len(content) - 1))
    content[at] ^= 1 << data.draw(st.integers(0, 7))
    path.write_bytes(content)
    assert verify(path).broken is not None


def test_a_line_cut_off_by_power_loss_is_named_and_the_chain_goes_on(tmp_path: Path) -> None:
    path = written(tmp_path / "log")
    path.write_bytes(path.read_bytes()[:-20])
    assert verify(written(path, 2)) == (5, None)
    assert b'"torn":' in path.read_bytes()


def remove(path: Path) -> None:
    path.unlink()


def move_away(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))


def cut(path: Path) -> None:
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))


def empty(path: Path) -> None:
    path.write_bytes(b"")


def rewrite(path: Path) -> None:
    """All of it made again with another ending, every hash as it should be."""
    path.unlink()
    log = AuditLog(path.with_name("forged"))
    for number in range(4):
        log.append("received", {"id": f"other {number}"})
    log.close()
    path.with_name("forged").rename(path)


def change_the_end(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b'"id":"3"', b'"id":"9"'))


DISTURBANCES = [remove, move_away, cut, empty, rewrite, change_the_end]


@proves("GATE-AUD-04")
@pytest.mark.parametrize("disturb", DISTURBANCES)
@pytest.mark.parametrize("idle", [False, True])
def test_a_log_disturbed_under_a_running_gate_is_noticed_and_never_verifies(
    tmp_path: Path, disturb: Callable[[Path], None], idle: bool
) -> None:
    path, noticed = tmp_path / "log", list[str]()
    log = AuditLog(path, noticed.append)
    for number in range(4):
        log.append("received", {"id": str(number)})
    log.check()
    assert noticed == []
    disturb(path)
    if idle:
        log.check()
    else:
        log.append("received", {"id": "next"})
    assert len(noticed) == 1
    log.check()
    log.append("received", {"id": "last"})
    assert len(noticed) == 1
    log.close()
    assert verify(path).broken is not None
    assert b'"event":"disturbed"' in path.read_bytes()


@proves("GATE-AUD-04")
@pytest.mark.parametrize("disturb", [remove, cut, empty, rewrite])
def test_a_log_disturbed_between_two_gates_is_noticed_by_the_next(
    tmp_path: Path, disturb: Callable[[Path], None]
) -> None:
    path, noticed = written(tmp_path / "log"), list[str]()
    disturb(path)
    log = AuditLog(path, noticed.append)
    log.append("started", {})
    log.close()
    assert noticed == ["the audit log does not end where the last gate left it"]
    assert verify(path).broken is not None


@proves("GATE-AUD-04")
def test_a_cut_log_does_not_verify_before_a_gate_has_seen_it(tmp_path: Path) -> None:
    path = written(tmp_path / "log")
    cut(path)
    broken = verify(path).broken
    assert broken == (4, "the log ends here, but more had been written")


@proves("GATE-AUD-04")
def test_the_hash_kept_apart_cannot_be_removed_unseen(tmp_path: Path) -> None:
    path, noticed = tmp_path / "log", list[str]()
    log = AuditLog(path)
    log.append("started", {HEAD_KEPT: True})
    log.close()
    head_path(path).unlink()
    assert verify(path).broken is not None
    log = AuditLog(path, noticed.append)
    log.append("started", {})
    log.close()
    assert noticed == ["the last hash of the audit log, kept apart from it, was removed"]


def test_a_log_of_an_earlier_version_is_continued(tmp_path: Path) -> None:
    path, noticed = written(tmp_path / "log"), list[str]()
    head_path(path).unlink()
    log = AuditLog(path, noticed.append)
    log.append("started", {})
    log.close()
    assert noticed == []
    assert verify(path) == (5, None)


@pytest.mark.parametrize("kind", ["directory", "link", "no folder"])
@proves("GATE-AUD-02")
def test_a_log_that_cannot_be_written_says_so(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "log"
    if kind == "directory":
        path.mkdir()
    elif kind == "link":
        path.symlink_to(tmp_path / "elsewhere")
    else:
        (tmp_path / "file").write_text("")
        path = tmp_path / "file" / "log"
    with pytest.raises(TroubleError, match="audit log cannot be written"):
        AuditLog(path).append("started", {})
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_full_disk_is_trouble(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    full = os.open("/dev/full", os.O_RDWR)
    monkeypatch.setattr(audit, "_open", lambda _: full)
    log = AuditLog(tmp_path / "log")
    with pytest.raises(TroubleError, match="No space left on device"):
        log.append("started", {})
    log.close()

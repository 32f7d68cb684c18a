import json
from pathlib import Path
from typing import Any

from stringd.gate.audit import AuditLog, verify
from stringd.gate.question import AskingPeer
from stringd.gate.refusals import BURST, PERIOD_SECONDS, RefusalRecords
from tests.requirements import proves

PEER = AskingPeer(4242, 1000, "/usr/bin/node")


class Clock:
    """A clock that stands still until it is moved."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def written(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@proves("GATE-AUD-03")
def test_a_flood_of_refusals_is_counted_and_not_written(tmp_path: Path) -> None:
    path, clock = tmp_path / "log", Clock()
    refusals = RefusalRecords(AuditLog(path), clock)
    for number in range(BURST + 50):
        refusals.add(PEER, f"{number}", "missing time field")
    assert len(written(path)) == BURST
    assert refusals.unrecorded == 50
    clock.now += PERIOD_SECONDS
    refusals.add(PEER, "later", "missing time field")
    assert (written(path)[-1]["id"], written(path)[-1]["unrecorded"]) == ("later", 50)
    assert refusals.unrecorded == 0
    refusals.add(PEER, "at once", "missing time field")
    assert refusals.unrecorded == 1
    assert verify(path).broken is None


@proves("GATE-AUD-03")
def test_a_refusal_is_small_on_disk_whatever_the_caller_sent(tmp_path: Path) -> None:
    path = tmp_path / "log"
    RefusalRecords(AuditLog(path)).add(PEER, "\U0001f600" * 100_000, "é" * 100_000)
    assert path.stat().st_size < 8192


def test_a_refusal_that_cannot_be_written_is_counted(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.mkdir()
    refusals = RefusalRecords(AuditLog(path))
    refusals.add(PEER, "seven", "missing time field")
    assert refusals.unrecorded == 1

"""`GET /gate/audit` of the real daemon."""

from pathlib import Path

import pytest

from stringd.gate.audit import AuditLog
from stringd.wire.gate import AUDIT_LOG
from tests.support.daemon import Daemon
from tests.support.http import request


def test_the_log_is_read_with_its_chain_checked(tmp_path: Path) -> None:
    with Daemon(tmp_path) as daemon:
        assert request(daemon.port, "GET", "/gate/audit").json["records"] == []
        path = daemon.data_dir / AUDIT_LOG
        log = AuditLog(path)
        for number in range(4):
            log.append("received", {"id": f"q{number}", "pipeline": [["true"]]})
        whole = request(daemon.port, "GET", "/gate/audit?limit=2").json
        path.write_bytes(path.read_bytes().replace(b"q1", b"q9", 1))
        broken = request(daemon.port, "GET", "/gate/audit").json
    assert [each["id"] for each in whole["records"]] == ["q2", "q3"]
    assert (whole["count"], whole["broken"]) == (4, None)
    assert broken["broken"]["line"] == 2


@pytest.mark.parametrize("limit", ["0", "-1", "x", "5001", "9" * 50])
def test_a_limit_that_is_not_one_is_refused(daemon: Daemon, limit: str) -> None:
    answer = request(daemon.port, "GET", f"/gate/audit?limit={limit}")
    assert answer.status == 400

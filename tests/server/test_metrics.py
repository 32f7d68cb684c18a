"""`GET /metrics`: figures for Prometheus."""

import re

from tests.support.daemon import Daemon
from tests.support.http import request

_LINE = re.compile(r'stringd_[a-z_]+(?:\{[a-z]+="[^"\\\n]*"\})? -?\d+(?:\.\d+)?(?:e[+-]\d+)?')


def figures(daemon: Daemon) -> dict[str, float]:
    answer = request(daemon.port, "GET", "/metrics")
    assert answer.status == 200
    lines = answer.body.decode().splitlines()
    samples = [line for line in lines if not line.startswith("#")]
    assert [line for line in samples if not _LINE.fullmatch(line)] == []
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in samples)}


def test_every_sample_is_announced_and_counts_what_happens(daemon: Daemon) -> None:
    before = figures(daemon)
    after = figures(daemon)
    assert after["stringd_requests_total"] > before["stringd_requests_total"]
    assert after["stringd_memory_bytes"] > 1_000_000
    assert after["stringd_open_connections"] >= 1
    assert {"stringd_queued_commands", "stringd_topics", "stringd_shells"} <= after.keys()
    assert {"stringd_active_runs", "stringd_gate_questions"} <= after.keys()


def test_pages_of_others_do_not_read_them(daemon: Daemon) -> None:
    answer = request(daemon.port, "GET", "/metrics", headers={"Origin": "https://evil.example"})
    assert answer.status == 403

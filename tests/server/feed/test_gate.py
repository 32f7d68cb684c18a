"""The gate's audit log, followed."""

import json
from pathlib import Path
from typing import Any

import pytest

from stringd.gate.audit import AuditLog
from stringd.server.feed.gate import GateWatch
from stringd.server.feed.ring import Feed
from stringd.wire.feed import KINDS, decode_event
from stringd.wire.sse import read_events

pytestmark = pytest.mark.anyio

ASKED = {
    "id": "q1",
    "peer": {"pid": 1, "uid": 0, "exe": "/usr/bin/node", "cwd": "/project"},
    "session": "claude",
    "reason": "to search",
    "privileged": True,
    "pipeline": [["apt-get", "install", "-y", "ripgrep"]],
}


def told(feed: Feed) -> list[Any]:
    data = feed.read(0, frozenset(KINDS)).data
    return [decode_event(text) for _, text in read_events(data)]


@pytest.fixture
def log(tmp_path: Path) -> AuditLog:
    return AuditLog(tmp_path / "gate-audit.jsonl")


@pytest.fixture
def watch(tmp_path: Path) -> tuple[Feed, GateWatch]:
    feed = Feed()
    return feed, GateWatch(feed, tmp_path / "gate-audit.jsonl")


async def test_a_question_is_asked_decided_and_over(
    log: AuditLog, watch: tuple[Feed, GateWatch]
) -> None:
    feed, gate = watch
    log.append("started", {})
    await gate.look()
    log.append("received", ASKED)
    await gate.look()
    assert [each.session for each in gate.waiting.values()] == ["claude"]
    log.append("decided", {"id": "q1", "decision": "approved"})
    log.append("finished", {"id": "q1", "exit_codes": [0]})
    await gate.look()
    asked, decided, ended = told(feed)
    assert (asked.stages, asked.program, asked.privileged) == (
        ASKED["pipeline"],
        "/usr/bin/node",
        True,
    )
    assert (decided.decision, ended.how, ended.exit_codes) == ("approved", "finished", [0])
    assert gate.waiting == {}


async def test_what_was_open_before_anybody_watched_waits_without_being_news(
    log: AuditLog, watch: tuple[Feed, GateWatch]
) -> None:
    feed, gate = watch
    log.append("received", {**ASKED, "id": "old"})
    log.append("decided", {"id": "old", "decision": "denied"})
    log.append("received", ASKED)
    await gate.look()
    assert (list(gate.waiting), told(feed)) == (["q1"], [])


async def test_a_gate_that_starts_again_forgets_what_the_last_one_was_asked(
    log: AuditLog, watch: tuple[Feed, GateWatch]
) -> None:
    feed, gate = watch
    await gate.look()
    log.append("received", ASKED)
    log.append("started", {})
    await gate.look()
    assert (gate.waiting, told(feed)[-1].how) == ({}, "stopped")


async def test_a_log_that_is_replaced_is_read_again(
    tmp_path: Path, log: AuditLog, watch: tuple[Feed, GateWatch]
) -> None:
    _, gate = watch
    log.append("received", ASKED)
    await gate.look()
    path = tmp_path / "gate-audit.jsonl"
    path.rename(tmp_path / "moved")
    path.write_text(json.dumps({"event": "received", "id": "q2", "pipeline": [["ls"]]}) + "\n")
    await gate.look()
    assert list(gate.waiting) == ["q1", "q2"]


async def test_torn_and_foreign_lines_are_passed_over(
    tmp_path: Path, watch: tuple[Feed, GateWatch]
) -> None:
    _, gate = watch
    await gate.look()
    lines = [b"{torn", b"[1]", b'"text"', b"", b'{"event": 7}', b'{"event":"received","id":"q3"}']
    (tmp_path / "gate-audit.jsonl").write_bytes(b"\n".join(lines) + b"\n")
    await gate.look()
    assert list(gate.waiting) == ["q3"]


async def test_a_link_in_the_place_of_the_log_is_not_followed(
    tmp_path: Path, watch: tuple[Feed, GateWatch]
) -> None:
    _, gate = watch
    (tmp_path / "elsewhere").write_text(json.dumps({"event": "received", "id": "q4"}) + "\n")
    (tmp_path / "gate-audit.jsonl").symlink_to(tmp_path / "elsewhere")
    await gate.look()
    assert gate.waiting == {}

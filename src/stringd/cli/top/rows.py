"""The overview of a daemon as rows of text. Pure."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final, Literal, NamedTuple

from stringd.cli.streams import unmistakable

Overview = Mapping[str, Any]

MOST_ENDED: Final = 5
"""Runs that are over and still shown, the latest."""
_STATES: Final = {
    "pending": "ready",
    "running": "working",
    "completed": "done",
    "cancelled": "stopped",
    "error": "failed",
}


class TopRow(NamedTuple):
    """A line of the picture. `about` names what keys act on: a run, a topic, or nothing.

    A prompt is named by its run, its kind, its agent and its id.
    """

    kind: Literal["head", "prompt", "gate", "run", "topic"]
    state: str
    text: str
    age: str = ""
    about: tuple[str, ...] = ()


def rows(seen: Overview, now: datetime) -> list[TopRow]:
    """Everything, what waits first."""
    return [*_waiting(seen, now), *_runs(seen, now), *_topics(seen, now)]


def summary(seen: Overview, port: int) -> str:
    """The daemon's own figures in a line."""
    health = seen["health"]
    return (
        f"stringd {seen['version']} on port {port}  {health['requestsPerSecond']} req/s  "
        f"queue {health['queued']}  {health['memoryBytes'] // 1_000_000} MB  "
        f"{health['shells']} shells  {health['errors']} errors"
    )


def _waiting(seen: Overview, now: datetime) -> Iterator[TopRow]:
    count = len(seen["waiting"]) + len(seen["gate"])
    yield TopRow("head", "", f"Waits for you  {count or 'nothing'}")
    for each in seen["waiting"]:
        asks = each["text"] or f"{each['tool']} {each['resource']}".strip() or "your next words"
        text = f"{each['agent']} in {each['strategy']}: {asks}"
        age = _age(each["ts"], now)
        about = (each["runId"], each["prompt"], each["agent"], each["requestId"])
        yield TopRow("prompt", each["prompt"], _one_line(text), age, about)
    for each in seen["gate"]:
        command = " | ".join(" ".join(stage) for stage in each["stages"])
        text = f"{command}  (press y in the gate's terminal)"
        yield TopRow("gate", "gate", _one_line(text), _age(each["ts"], now))


def _runs(seen: Overview, now: datetime) -> Iterator[TopRow]:
    live = [each for each in seen["runs"] if each["status"] in ("pending", "running")]
    ended = [each for each in seen["runs"] if each not in live]
    asking = {each["runId"] for each in seen["waiting"]}
    yield TopRow("head", "", f"Runs  {len(live)} live, {len(ended)} ended")
    for each in [*reversed(live), *reversed(ended[-MOST_ENDED:])]:
        state = _STATES.get(each["status"], each["status"])
        said = each.get("error") or each.get("result") or ""
        text = f"{each['strategyName']}  {each['runId'][:8]}  {said}".rstrip()
        since = each.get("completedAt") or each["startedAt"]
        waits = each["runId"] in asking
        about = (each["runId"],)
        yield TopRow("run", "waits" if waits else state, _one_line(text), _age(since, now), about)


def _topics(seen: Overview, now: datetime) -> Iterator[TopRow]:
    shells = [each for each in seen["topics"] if each["type"] == "bash"]
    others = [each for each in seen["topics"] if each["type"] != "bash"]
    for name, found in (("Shells", shells), ("Topics", others)):
        yield TopRow("head", "", f"{name}  {len(found)}")
        for each in found:
            yield _topic(each, now)


def _topic(each: Mapping[str, Any], now: datetime) -> TopRow:
    about = (each["user"], each["topic"])
    last = each["last"] or {}
    if each["running"]:
        text = f"{each['topic']}  {each['running'][-1]['command']}"
        return TopRow("topic", "working", _one_line(text), "", about)
    failed = bool(last) and not last["ok"]
    said = f"{last['command']}  {last['code'] if failed else ''}" if last else each["detail"]
    text = f"{each['topic']}  {said}".rstrip()
    age = _age(last["ts"], now) if last.get("ts") else ""
    return TopRow("topic", "failed" if failed else "idle", _one_line(text), age, about)


def _one_line(text: str) -> str:
    return unmistakable(text.strip().partition("\n")[0])


def _age(since: str, now: datetime) -> str:
    """How long ago a time of the daemon was, briefly."""
    try:
        seconds = int((now - datetime.fromisoformat(since)).total_seconds())
    except ValueError:
        return ""
    if seconds < 60:
        return f"{max(0, seconds)} s"
    if seconds < 3600:
        return f"{seconds // 60} min"
    return f"{seconds // 3600} h" if seconds < 86_400 else f"{seconds // 86_400} d"


def fitted(row: TopRow, width: int) -> str:
    """The row in so many columns: what is cut is the middle, never the age."""
    if row.kind == "head":
        return row.text[:width]
    room = max(0, width - 16 - len(row.age) - 2)
    text = row.text if len(row.text) <= room else f"{row.text[: max(0, room - 1)]}…"
    return f"  {row.state:<12}  {text:<{room}}  {row.age}"[:width]

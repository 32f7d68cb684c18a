"""`GET /events` and `GET /overview` of the real daemon."""

import http.client
import json
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from websockets.asyncio.client import connect

from stringd.wire.sse import SseReader
from tests.runs.support import Watcher, sequential, strategy
from tests.support.daemon import WAIT_SECONDS, Daemon
from tests.support.http import User, request

ASKS = strategy(sequential("you"), you={"type": "user"})


class Watching:
    """A reader of the feed."""

    def __init__(self, port: int, path: str = "/events", **headers: str) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=WAIT_SECONDS)
        self._connection.request("GET", path, headers=headers)
        self._response = self._connection.getresponse()
        assert self._response.status == 200, self._response.read()
        self._reader = SseReader()
        self.seen: list[dict[str, Any]] = []
        self._fill()

    def _fill(self) -> bool:
        piece = self._response.read1(65536)
        self.seen += [json.loads(data) for _, data in self._reader.feed(piece)]
        return bool(piece)

    def until(self, kind: str, **fields: object) -> dict[str, Any]:
        """Wait for an event of this kind with these fields."""
        looked = 0
        while True:
            for event in self.seen[looked:]:
                if event["kind"] == kind and all(event[k] == v for k, v in fields.items()):
                    return event
            looked = len(self.seen)
            assert self._fill(), f"the feed ended without {kind}: {self.seen}"

    def ended(self) -> bool:
        while self._fill():
            pass
        return True

    def close(self) -> None:
        self._connection.close()


@contextmanager
def watching(port: int, path: str = "/events", **headers: str) -> Iterator[Watching]:
    reader = Watching(port, path, **headers)
    try:
        yield reader
    finally:
        reader.close()


def test_a_command_is_seen_with_its_topic_code_and_client(daemon: Daemon, user: User) -> None:
    with watching(daemon.port) as feed:
        user.exec("/open nothing.md", "file:seen")
        done = feed.until("topic.done", user=user.id)
        created = feed.until("topic.created", user=user.id)
    assert (created["topic"], done["topic"], done["command"]) == (
        "file:seen",
        "file:seen",
        "/open nothing.md",
    )
    assert (done["ok"], done["code"]) == (False, "NOT_FOUND")


def test_a_command_that_takes_time_is_seen_twice_under_one_number(
    daemon: Daemon, user: User
) -> None:
    with watching(daemon.port, "/events?types=topic.*") as feed:
        user.exec("echo hello", "bash:seen")
        done = feed.until("topic.done", user=user.id, topic="bash:seen")
        began = feed.until("topic.executing", user=user.id, number=done["number"])
    assert began["command"] == done["command"] == "echo hello"
    assert done["ms"] > 0


def test_closing_a_topic_is_seen(daemon: Daemon, user: User) -> None:
    user.exec("/help", "file:gone")
    with watching(daemon.port) as feed:
        request(daemon.port, "DELETE", f"/sessions/{user.id}/file:gone")
        assert feed.until("topic.closed", user=user.id)["topic"] == "file:gone"


def test_the_feed_continues_where_a_reader_left_it(daemon: Daemon, user: User) -> None:
    with watching(daemon.port) as feed:
        user.exec("/help", "file:one")
        first = feed.until("topic.done", user=user.id, topic="file:one")
    user.exec("/help", "file:two")
    for path, headers in (
        (f"/events?after={first['id']}", {}),
        ("/events?after=old-1", {"Last-Event-ID": first["id"]}),
    ):
        with watching(daemon.port, path, **headers) as again:
            again.until("topic.done", user=user.id, topic="file:two")
            assert not [each for each in again.seen if each.get("topic") == "file:one"]


def test_kinds_and_positions_that_are_none_are_refused_with_a_reason(daemon: Daemon) -> None:
    kinds = request(daemon.port, "GET", "/events?types=nonsense")
    position = request(daemon.port, "GET", "/events?after=nonsense")
    assert (kinds.status, position.status) == (400, 400)
    assert "topic.done" in kinds.json["error"]


def test_a_foreign_page_sees_nothing(daemon: Daemon) -> None:
    for path in ("/events", "/overview"):
        answer = request(daemon.port, "GET", path, headers={"Origin": "https://evil.example"})
        assert answer.status == 403


def test_the_overview_says_how_everything_is(daemon: Daemon, user: User) -> None:
    user.exec("/help", "file:shown")
    seen = request(daemon.port, "GET", "/overview").json
    [topic] = [each for each in seen["topics"] if each["user"] == user.id]
    assert (topic["topic"], topic["type"], topic["last"]["command"]) == (
        "file:shown",
        "file",
        "/help",
    )
    assert seen["health"]["topics"] >= 1
    with watching(daemon.port, f"/events?after={seen['position']}") as feed:
        user.exec("/help", "file:later")
        feed.until("topic.done", user=user.id, topic="file:later")


def test_what_is_set_does_not_show(daemon: Daemon, user: User) -> None:
    with watching(daemon.port) as feed:
        user.exec("/set $HIDDEN s3cret-value", "file:set")
        done = feed.until("topic.done", user=user.id)
        assert done["command"] == "/set $HIDDEN …"
        user.exec("/act.login --token s3cret-value", "file:login")
        done = feed.until("topic.done", user=user.id, topic="file:login")
    assert done["command"] == "/act.login --token …"


def test_stopping_the_daemon_ends_the_stream(tmp_path: Path) -> None:
    with Daemon(tmp_path) as daemon, watching(daemon.port) as feed:
        assert daemon.process is not None
        daemon.process.send_signal(signal.SIGTERM)
        assert feed.ended()
        assert daemon.stop() == 0


@pytest.mark.anyio
async def test_a_run_that_asks_waits_in_feed_and_overview_until_it_is_answered(
    daemon: Daemon, tmp_path: Path
) -> None:
    path = tmp_path / "asks.yaml"
    path.write_text(yaml.safe_dump(ASKS), "utf-8")
    with watching(daemon.port, "/events?types=run.*") as feed:
        async with connect(f"ws://127.0.0.1:{daemon.port}/ws", proxy=None) as socket:
            client = Watcher(socket)
            await client.ask("prepare_run", runId="asking", strategyPath=str(path))
            await client.send("start_run", runId="asking", input="")
            asked = (await client.until("request_input"))[-1]
            waiting = feed.until("run.waiting", runId="asking")
            listed = request(daemon.port, "GET", "/overview").json["waiting"]
            await client.send(
                "user_input", runId="asking", agentName=asked["agentName"], text="frost"
            )
            await client.until("strategy_completed")
        resolved = feed.until("run.resolved", runId="asking")
        feed.until("run.state", runId="asking", status="completed")
        states = [each["status"] for each in feed.seen if each["kind"] == "run.state"]
    assert (waiting["prompt"], waiting["agent"]) == ("input", "you")
    assert [each["requestId"] for each in listed] == [waiting["requestId"]]
    assert (resolved["answer"], resolved["by"].partition(",")[0]) == ("frost", "human")
    assert states == ["pending", "running", "completed"]
    assert request(daemon.port, "GET", "/overview").json["waiting"] == []

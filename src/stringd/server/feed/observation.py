"""Everything that feeds the feed, and the overview of how things are now.

Looks at the gate's log and at the daemon's own health cost something, so they happen only while
somebody reads the feed.
"""

import asyncio
import os
import resource
from pathlib import Path
from time import monotonic, perf_counter, time
from typing import TYPE_CHECKING, Any, Final

import msgspec

from stringd import __version__
from stringd.runtime.shell.shell import Shell
from stringd.server.feed.gate import GateWatch
from stringd.server.feed.ring import Feed
from stringd.server.feed.topics import TopicWatch
from stringd.server.http.messages import HttpRequest, HttpResponse, json_response
from stringd.system.clock import timestamp
from stringd.wire.feed import DaemonHealth, RunChanged, RunWaiting

if TYPE_CHECKING:
    from stringd.runtime.runtime import Runtime
    from stringd.runtime.topics.session import Slot
    from stringd.server.feed.runs import RunWatch
    from stringd.server.runs import RunsEndpoint
    from stringd.wire.runs.types import RunSummary

HEALTH_SECONDS: Final = 5.0

_PAGE_BYTES: Final = resource.getpagesize()


class Observation:
    """One per daemon. `topics` and `of_runs` hear the rooms; `attach` makes the rest possible."""

    def __init__(self, audit_log: Path) -> None:
        self.feed = Feed()
        self.topics = TopicWatch(self.feed)
        self.waiting: dict[tuple[str, str], RunWaiting] = {}
        """Prompts of runs that nobody has answered, by run and id, oldest first."""
        self.gate = GateWatch(self.feed, audit_log)
        self.ended: dict[str, RunChanged] = {}
        """How runs of this life of the daemon ended, the latest of them."""
        self.requests = 0
        """Requests since the daemon started."""
        self.errors = 0
        """Requests that failed inside the daemon."""
        self.feed.listened = self._listened
        self._looks: list[asyncio.Task[None]] = []
        self._rate = 0.0
        self._delay_ms = 0.0
        self._measured = (0, monotonic())
        self._runtime: Runtime
        self._endpoint: RunsEndpoint

    def attach(self, runtime: "Runtime", runs: "RunsEndpoint") -> None:
        """Know the rooms whose state `overview` shows."""
        self._runtime = runtime
        self._endpoint = runs

    def of_runs(self) -> "RunWatch":
        """What hears the runs; loaded with their room, after the first answer."""
        from stringd.server.feed.runs import RunWatch

        return RunWatch(self.feed, self.waiting, self.ended)

    def close(self) -> None:
        """End every stream; the daemon is stopping."""
        self.feed.close()
        self._listened(False)

    async def overview(self, _request: HttpRequest) -> HttpResponse:
        """`GET /overview`: how everything is now, and the position the feed continues from."""
        await self.gate.look()
        body = {
            "position": str(self.feed.position),
            "ts": timestamp(),
            "version": __version__,
            "pid": os.getpid(),
            "topics": [self._topic(slot) for slot in self._runtime.topics.sessions()],
            "runs": [self._run(summary) for summary in self._endpoint.summaries()],
            "waiting": list(self.waiting.values()),
            "gate": list(self.gate.waiting.values()),
            "health": self.health(),
        }
        return json_response(200, body)

    def _run(self, summary: "RunSummary") -> dict[str, Any]:
        ended = self.ended.get(summary.run_id)
        more = {"result": ended.result, "error": ended.error} if ended else {}
        return {**msgspec.to_builtins(summary), **more}

    def health(self) -> DaemonHealth:
        """The daemon's own figures; the rate is that of the last five seconds somebody watched."""
        slots = list(self._runtime.topics.sessions())
        return DaemonHealth(
            ts=timestamp(),
            requests_per_second=self._rate,
            queued=sum(max(0, slot.queue.length) for slot in slots),
            memory_bytes=_memory(),
            topics=len(slots),
            shells=sum(map(_is_live_shell, slots)),
            runs=self._endpoint.active_runs,
            waiting=len(self.waiting) + len(self.gate.waiting),
            failed_commands=self.topics.failures,
            errors=self.errors,
            readers=self.feed.readers,
            loop_delay_ms=self._delay_ms,
            busy_shells=[
                (slot.user_id, slot.topic.canonical) for slot in slots if _is_busy_shell(slot)
            ],
        )

    def _listened(self, anybody: bool) -> None:
        for look in self._looks:
            look.cancel()
        self._looks = []
        if anybody:
            self._measured = (self.requests, monotonic())
            works = (self.gate.follow(), self._tell_health())
            self._looks = [asyncio.ensure_future(work) for work in works]

    async def _tell_health(self) -> None:
        while True:
            await asyncio.sleep(HEALTH_SECONDS)
            requests, since = self._measured
            self._measured = (self.requests, monotonic())
            elapsed = max(self._measured[1] - since, 0.001)
            self._delay_ms = round(max(0.0, elapsed - HEALTH_SECONDS) * 1000, 1)
            self._rate = round((self.requests - requests) / elapsed, 1)
            self.feed.publish(self.health())

    def _topic(self, slot: "Slot") -> dict[str, Any]:
        user, topic = slot.user_id, slot.topic.canonical
        meta = slot.session.meta() if slot.session else None
        return {
            "user": user,
            "topic": topic,
            "type": slot.topic.type,
            "detail": slot.session.detail() if slot.session else "",
            "uri": meta.uri if meta else "",
            "title": (meta.title if meta else None) or "",
            "executing": slot.queue.busy,
            "queued": slot.queue.length,
            "running": [
                {
                    "number": number,
                    "command": each.command,
                    "client": each.client,
                    "ts": timestamp(time() - (perf_counter() - each.began)),
                }
                for number, each in self.topics.running.items()
                if (each.user, each.topic) == (user, topic)
            ],
            "last": self.topics.last(user, topic),
        }


def _is_live_shell(slot: "Slot") -> bool:
    running = slot.session.running if slot.session else None
    return slot.topic.type == "bash" and running is not None and not running.ended


def _is_busy_shell(slot: "Slot") -> bool:
    running = slot.session.running if slot.session else None
    return isinstance(running, Shell) and running.busy


def _memory() -> int:
    """Resident bytes of this process; 0 where the system does not say."""
    try:
        return int(Path("/proc/self/statm").read_text("ascii").split()[1]) * _PAGE_BYTES
    except (OSError, ValueError, IndexError):
        return 0

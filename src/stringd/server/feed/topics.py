"""Topics in the feed: created, executing, done, closed."""

from time import perf_counter, time
from typing import TYPE_CHECKING, NamedTuple

from stringd.server.feed.commands import client_name, shown_command
from stringd.system.clock import timestamp
from stringd.wire.feed import TopicClosed, TopicCreated, TopicDone, TopicExecuting

if TYPE_CHECKING:
    from stringd.runtime.topics.observer import ClientName
    from stringd.runtime.topics.session import Slot
    from stringd.server.feed.ring import Feed
    from stringd.wire.result import Result


class TopicCommand(NamedTuple):
    """A command that has not ended."""

    user: str
    topic: str
    command: str
    client: str
    began: float


class TopicWatch:
    """Hears the topics and tells the feed."""

    def __init__(self, feed: "Feed") -> None:
        self._feed = feed
        self._number = 0
        self.commands = 0
        """Commands since the daemon started."""
        self.failures = 0
        """Those that ended with an error."""
        self.running: dict[int, TopicCommand] = {}
        self._last: dict[tuple[str, str], tuple[float, TopicDone]] = {}

    def created(self, user_id: str, topic: str) -> None:
        self._feed.publish(TopicCreated(user=user_id, topic=topic))

    def closed(self, user_id: str, topic: str) -> None:
        self._last.pop((user_id, topic), None)
        self._feed.publish(TopicClosed(user=user_id, topic=topic))

    def answered(self, slot: "Slot", text: str, client: "ClientName", result: "Result") -> None:
        self._done(
            TopicDone(
                user=slot.user_id,
                topic=slot.topic.canonical,
                command=shown_command(text),
                client=client_name(client),
                ok=result.ok,
                code=None if result.ok else result.code,
                ms=0,
            )
        )

    def began(self, slot: "Slot", text: str, client: "ClientName", /) -> int:
        self._number += 1
        started = TopicCommand(
            slot.user_id,
            slot.topic.canonical,
            shown_command(text),
            client_name(client),
            perf_counter(),
        )
        self.running[self._number] = started
        self._feed.publish(
            TopicExecuting(
                user=started.user,
                topic=started.topic,
                command=started.command,
                client=started.client,
                number=self._number,
            )
        )
        return self._number

    def ended(self, number: int, result: "Result") -> None:
        started = self.running.pop(number, None)
        if started is None:
            return
        self._done(
            TopicDone(
                user=started.user,
                topic=started.topic,
                command=started.command,
                client=started.client,
                ok=result.ok,
                code=None if result.ok else result.code,
                ms=round((perf_counter() - started.began) * 1000, 1),
                number=number,
            )
        )

    def last(self, user_id: str, topic: str) -> TopicDone | None:
        """What an open topic did last."""
        found = self._last.get((user_id, topic))
        if found is None:
            return None
        at, done = found
        done.ts = done.ts or timestamp(at)
        return done

    def _done(self, done: TopicDone) -> None:
        self.commands += 1
        if not done.ok:
            self.failures += 1
        at = time()
        self._last[done.user, done.topic] = (at, done)
        self._feed.publish(done, at)

"""The last events of the daemon, numbered. Readers take them at their own pace.

Publishing costs the same however many read: nobody has a queue, a reader that falls further behind
than the ring reaches is told how much it missed.
"""

import asyncio
from time import time
from typing import TYPE_CHECKING, Final, NamedTuple
from uuid import uuid4

import msgspec

from stringd.system.clock import timestamp
from stringd.wire.feed import FeedEvent, FeedMissed, FeedPosition, encode_event, kind_of

if TYPE_CHECKING:
    from collections.abc import Callable

RING_SIZE: Final = 10_000
BATCH_EVENTS: Final = 256
"""Events given out at once, so that a reader who is behind does not hold up the loop."""


class _Entry(msgspec.Struct, eq=False, gc=False):
    event: FeedEvent
    at: float
    encoded: bytes | None = None


class Batch(NamedTuple):
    """Events ready to send, and the position after them."""

    data: bytes
    number: int


class Feed:
    """One per daemon."""

    def __init__(self, size: int = RING_SIZE) -> None:
        self.boot = uuid4().hex[:12]
        self.number = 0
        """The number of the latest event."""
        self.listened: Callable[[bool], None] = lambda _anybody: None
        """Called when the first reader comes and when the last one leaves."""
        self._size = size
        self._entries: list[_Entry | None] = [None] * size
        self.closed = False
        self._readers = 0
        self._waiting: set[asyncio.Future[None]] = set()

    @property
    def position(self) -> FeedPosition:
        return FeedPosition(self.boot, self.number)

    @property
    def readers(self) -> int:
        return self._readers

    def publish(self, event: FeedEvent, at: float | None = None) -> None:
        """Add an event of now, or of that time; whoever waits for one is woken."""
        self.number = number = self.number + 1
        self._entries[number % self._size] = _Entry(event, time() if at is None else at)
        if self._waiting:
            self._wake()

    def close(self) -> None:
        """End every stream; the daemon is stopping."""
        self.closed = True
        self._wake()

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, set()
        for each in waiting:
            if not each.done():
                each.set_result(None)

    def enter(self) -> None:
        """A reader came."""
        self._readers += 1
        if self._readers == 1:
            self.listened(True)

    def leave(self) -> None:
        """A reader left."""
        self._readers -= 1
        if self._readers == 0:
            self.listened(False)

    def start(self, after: FeedPosition | None) -> tuple[int, bytes]:
        """Where a reader begins, and what it has to hear first: by default what comes from now."""
        if after is None:
            return self.number, b""
        if after.boot != self.boot:
            return max(0, self.number - self._size), self._missed("restarted", 0)
        return min(after.number, self.number), b""

    def read(self, after: int, kinds: frozenset[str]) -> Batch:
        """Events behind a position, at most a batch; no data when none is of these kinds."""
        oldest = self.number - self._size
        pieces: list[bytes] = []
        if after < oldest:
            pieces.append(self._missed("behind", oldest - after))
            after = oldest
        last = min(self.number, after + BATCH_EVENTS)
        for number in range(after + 1, last + 1):
            entry = self._entries[number % self._size]
            if entry is not None and kind_of(entry.event) in kinds:
                pieces.append(self._encoded(number, entry))
        return Batch(b"".join(pieces), last)

    def more(self) -> asyncio.Future[None]:
        """A future that resolves with the next event; `give_up` ends the wait before."""
        future = asyncio.get_running_loop().create_future()
        self._waiting.add(future)
        return future

    def give_up(self, waiting: asyncio.Future[None]) -> None:
        """Nobody waits for this any more: there may be no next event for days."""
        self._waiting.discard(waiting)

    def _encoded(self, number: int, entry: _Entry) -> bytes:
        if entry.encoded is None:
            entry.event.ts = entry.event.ts or timestamp(entry.at)
            entry.encoded = encode_event(FeedPosition(self.boot, number), entry.event)
        return entry.encoded

    def _missed(self, why: str, count: int) -> bytes:
        event = FeedMissed(why="restarted" if why == "restarted" else "behind", count=count)
        event.ts = timestamp()
        number = max(0, self.number - self._size)
        return encode_event(FeedPosition(self.boot, number), event)

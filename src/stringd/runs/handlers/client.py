"""A connected client: what it asked to hear, and the frames on their way to it.

Frames wait in a bounded outbox. A client that reads too slowly for a run's broadcasts is taken off
that run, told so, and can come back with `subscribe {fromSeq}`; it holds up nobody.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final, Literal, Protocol
from uuid import uuid4

from msgspec import UNSET

from stringd.runs.record.events import DecidedBy
from stringd.runs.tools.offered import OpenToolCalls
from stringd.system.clock import timestamp
from stringd.system.lineage import Program, Speaker
from stringd.wire.runs import encode
from stringd.wire.runs.messages import Error, Message

# A burst of a thousand runs fits. Frames are shared between clients, so many stuck ones cost one.
MAX_FRAMES: Final = 10_000
MAX_BYTES: Final = 64 * 1024 * 1024
PAUSE_BYTES: Final = 128 * 1024
"""With so much queued, nothing more is read from a client or replayed to it: that is its alone."""
MAX_TASKS: Final = 256
"""Requests of one client that are waiting or worked on; the next is read when one is done."""
MAX_WORKING: Final = 16
"""Requests of one client that take a while and are worked on at once."""

ClientKind = Literal["human", "agent", "program"]
"""Whom a client serves. One that says nothing about itself is taken for a person's."""


class Handler(Protocol):
    """Takes a client's frames."""

    def receive(self, client: "ConnectedClient", frame: str | bytes) -> None: ...

    def gone(self, client: "ConnectedClient") -> None: ...


class ConnectedClient:
    """One connection. It calls `wake` when there is something to `take`."""

    def __init__(
        self,
        handler: Handler,
        wake: Callable[[], None],
        *,
        wake_later: Callable[[], None] | None = None,
        max_frames: int = MAX_FRAMES,
        max_bytes: int = MAX_BYTES,
        speaker: Speaker | None = None,
        kind: ClientKind = "human",
    ) -> None:
        self.id = str(uuid4())
        self.speaker = speaker
        self.kind: ClientKind = kind
        self._program: Program | None = None
        # Frames that wait until it is known who sent the one before them.
        self._held: deque[str | bytes] | None = None
        self.runs: set[str] = set()
        self.tool_calls = OpenToolCalls(self.reply)
        self.tasks: set[asyncio.Task[None]] = set()
        self._working = asyncio.Semaphore(MAX_WORKING)
        # Runs that are being replayed to it; each is followed when its replay is done.
        self.replays: dict[str, asyncio.Task[None]] = {}
        self.closing = False
        self.finished = asyncio.Event()
        self._handler = handler
        self._wake = wake
        self._wake_later = wake_later or wake
        # Whether whoever takes the frames was told that there is no hurry.
        self._unhurried = False
        self._max_frames = max_frames
        self._max_bytes = max_bytes
        self._pause_bytes = min(max_bytes, PAUSE_BYTES)
        self._outbox: deque[bytes] = deque()
        self._bytes = 0
        self._roomy = asyncio.Event()
        self._roomy.set()

    @property
    def by(self) -> DecidedBy:
        """Who sends, as far as that was asked."""
        via = f"client {self.id}"
        if self._program is None:
            return DecidedBy(kind=self.kind if self.speaker is None else "agent", via=via)
        pid, name = self._program
        return DecidedBy(kind=self.kind, via=via, program=name or UNSET, pid=pid or UNSET)

    def receive(self, frame: str | bytes) -> None:
        """Handle one frame. Answers come out of `take`, some of them later."""
        if self._held is not None:
            self._held.append(frame)
        else:
            self._handler.receive(self, frame)

    async def identify(self) -> Program | None:
        """Ask who sent the last frame; later ones wait until `go_on`."""
        assert self.speaker is not None
        self._program = await self.speaker.outsider()
        return self._program

    def hold(self) -> None:
        """Keep the frames that come from now on waiting."""
        self._held = deque()

    def go_on(self) -> None:
        """Handle the frames that waited, up to one that makes the others wait again."""
        waiting, self._held = self._held or deque(), None
        for frame in waiting:
            self.receive(frame)
        # Whoever stopped reading from it meanwhile may read again.
        self._wake()

    def gone(self) -> None:
        """The connection ended; nothing more will be taken."""
        if not self.finished.is_set():
            self.finished.set()
            self.closing = True
            self.tool_calls.close()
            self._wake = self._wake_later = _nobody_waits
            self.take()
            self._handler.gone(self)

    def hang_up(self) -> None:
        """Take nothing new; whoever carries the frames closes once the last is out."""
        self.closing = True
        self._roomy.set()
        self._wake()

    def take(self, limit: int | None = None) -> list[bytes]:
        """Queued frames in order: all of them, or so many that they reach this number of bytes."""
        outbox = self._outbox
        if limit is None or self._bytes <= limit:
            frames = list(outbox)
            outbox.clear()
            self._bytes = 0
        else:
            frames, taken = [], 0
            while taken < limit:
                frames.append(outbox.popleft())
                taken += len(frames[-1])
            self._bytes -= taken
        if not self._pausing:
            self._roomy.set()
        return frames

    @property
    def waiting(self) -> bool:
        """Whether there are frames to take."""
        return bool(self._outbox)

    async def room(self) -> None:
        """Wait until frames have been taken from a full outbox."""
        await self._roomy.wait()

    @asynccontextmanager
    async def working(self) -> AsyncIterator[None]:
        """Around work whose answer may be large: some at a time, and none while nobody reads."""
        async with self._working:
            if self._bytes >= self._pause_bytes:
                await self.room()
            yield

    def add_task(self, task: asyncio.Task[None]) -> None:
        """Something is done for this client."""
        self.tasks.add(task)
        task.add_done_callback(self._remove_task)

    def _remove_task(self, task: asyncio.Task[None]) -> None:
        crowded = len(self.tasks) >= MAX_TASKS
        self.tasks.discard(task)
        if crowded:
            self._wake()

    @property
    def full(self) -> bool:
        """Whether nothing more should be read from it now."""
        return self._held is not None or self._pausing or len(self.tasks) >= MAX_TASKS

    @property
    def _pausing(self) -> bool:
        """Whether what is queued for it alone should be read first."""
        return len(self._outbox) >= self._max_frames or self._bytes >= self._pause_bytes

    def reply(self, message: Message) -> None:
        """Queue an answer to this client alone."""
        message.ts = timestamp()
        self.push(encode(message))

    def push(self, frame: bytes) -> None:
        """Queue a frame, however full the outbox is."""
        if self.closing:
            return
        if not self._outbox or self._unhurried:
            self._unhurried = False
            self._wake()
        self._queue(frame)

    def _queue(self, frame: bytes) -> None:
        self._outbox.append(frame)
        self._bytes += len(frame)
        if self._bytes >= self._pause_bytes or len(self._outbox) >= self._max_frames:
            self._roomy.clear()

    def offer(self, run_id: str, seq: int, frame: bytes) -> bool:
        """Queue a broadcast; False when this client is too far behind to hear more of the run."""
        if self._bytes < self._max_bytes and len(self._outbox) < self._max_frames:
            if not self.closing:
                if not self._outbox:
                    self._unhurried = True
                    self._wake_later()
                self._queue(frame)
            return True
        self.runs.discard(run_id)
        self.reply(
            Error(
                code="SUBSCRIBER_BEHIND",
                message=f"Too slow for run {run_id}: nothing after event {seq - 1} was queued. "
                f"Send subscribe with fromSeq {seq} to go on.",
                run_id=run_id,
                next_seq=seq,
            )
        )
        return False


def _nobody_waits() -> None:
    """Whoever would be woken is gone."""

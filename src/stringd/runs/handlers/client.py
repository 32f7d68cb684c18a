"""A connected client: what it asked to hear, and the frames on their way to it.

Frames wait in a bounded outbox. A client that reads too slowly for a run's broadcasts is taken off
that run, told so, and can come back with `subscribe {fromSeq}`; it holds up nobody.
"""

import asyncio
from collections.abc import Callable
from typing import Final, Protocol
from uuid import uuid4

from stringd.system.clock import timestamp
from stringd.wire.runs import encode
from stringd.wire.runs.messages import Error, Message

# A burst of a thousand runs fits. Frames are shared between clients, so many stuck ones cost one.
MAX_FRAMES: Final = 10_000
MAX_BYTES: Final = 64 * 1024 * 1024


class Handler(Protocol):
    """Takes a client's frames."""

    def receive(self, client: "RunsClient", frame: str | bytes) -> None: ...

    def gone(self, client: "RunsClient") -> None: ...


class RunsClient:
    """One connection. It calls `wake` when there is something to `take`."""

    def __init__(
        self,
        handler: Handler,
        wake: Callable[[], None],
        *,
        max_frames: int = MAX_FRAMES,
        max_bytes: int = MAX_BYTES,
    ) -> None:
        self.id = str(uuid4())
        self.runs: set[str] = set()
        self.tasks: set[asyncio.Task[None]] = set()
        # Runs that are being replayed to it; each is followed when its replay is done.
        self.replays: dict[str, asyncio.Task[None]] = {}
        self.closing = False
        self.finished = asyncio.Event()
        self._handler = handler
        self._wake = wake
        self._max_frames = max_frames
        self._max_bytes = max_bytes
        self._outbox: list[bytes] = []
        self._bytes = 0
        self._roomy = asyncio.Event()
        self._roomy.set()

    def receive(self, frame: str | bytes) -> None:
        """Handle one frame. Answers come out of `take`, some of them later."""
        self._handler.receive(self, frame)

    def gone(self) -> None:
        """The connection ended; nothing more will be taken."""
        if not self.finished.is_set():
            self.finished.set()
            self.closing = True
            self.take()
            self._handler.gone(self)

    def hang_up(self) -> None:
        """Take nothing new; whoever carries the frames closes once the last is out."""
        self.closing = True
        self._roomy.set()
        self._wake()

    def take(self) -> list[bytes]:
        """Every queued frame, in order."""
        frames, self._outbox = self._outbox, []
        self._bytes = 0
        self._roomy.set()
        return frames

    async def room(self) -> None:
        """Wait until frames have been taken from a full outbox."""
        await self._roomy.wait()

    @property
    def full(self) -> bool:
        return len(self._outbox) >= self._max_frames or self._bytes >= self._max_bytes

    def reply(self, message: Message) -> None:
        """Queue an answer to this client alone."""
        message.ts = timestamp()
        self.push(encode(message))

    def push(self, frame: bytes) -> None:
        """Queue a frame, however full the outbox is."""
        if self.closing:
            return
        if not self._outbox:
            self._wake()
        self._outbox.append(frame)
        self._bytes += len(frame)
        if self.full:
            self._roomy.clear()

    def offer(self, run_id: str, seq: int, frame: bytes) -> bool:
        """Queue a broadcast; False when this client is too far behind to hear more of the run."""
        if not self.full:
            self.push(frame)
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

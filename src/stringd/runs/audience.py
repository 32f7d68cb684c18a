"""A connected client: what it asked to hear, and the frames on their way to it.

Frames wait in a bounded outbox. A client that reads too slowly for a run's broadcasts is taken off
that run, told so, and can come back with `subscribe {fromSeq}`; it holds up nobody.
"""

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Final, Protocol
from uuid import uuid4

from stringd.runs.clock import timestamp
from stringd.wire.runs import encode
from stringd.wire.runs.messages import Error, Message

if TYPE_CHECKING:
    from stringd.runs.run import Run

# A burst of a thousand runs fits; a client stuck for good costs at most these.
MAX_FRAMES: Final = 10_000
MAX_CHARACTERS: Final = 8 * 1024 * 1024


class Handler(Protocol):
    """Takes a client's frames."""

    def receive(self, client: "Client", frame: str | bytes) -> None: ...

    def gone(self, client: "Client") -> None: ...


class Client:
    """One connection. `receive` what it sends; `take` what it shall get."""

    def __init__(
        self,
        handler: Handler,
        *,
        max_frames: int = MAX_FRAMES,
        max_characters: int = MAX_CHARACTERS,
    ) -> None:
        self.id = str(uuid4())
        self.runs: set[str] = set()
        self.tasks: set[asyncio.Task[None]] = set()
        self.closed = False
        self.finished = asyncio.Event()
        self._handler = handler
        self._max_frames = max_frames
        self._max_characters = max_characters
        self._outbox: deque[str] = deque()
        self._characters = 0
        self._filled = asyncio.Event()
        self._roomy = asyncio.Event()
        self._roomy.set()

    def receive(self, frame: str | bytes) -> None:
        """Handle one frame. Answers come out of `take`, some of them later."""
        self._handler.receive(self, frame)

    def gone(self) -> None:
        """The connection ended; nothing more will be taken."""
        if not self.finished.is_set():
            self.finished.set()
            self._outbox.clear()
            self.hang_up()
            self._handler.gone(self)

    def hang_up(self) -> None:
        """Let `take` hand out what is queued and then end."""
        self.closed = True
        self._filled.set()
        self._roomy.set()

    async def take(self) -> list[str]:
        """The queued frames, at least one; an empty list once the client is to be closed."""
        while not self._outbox and not self.closed:
            self._filled.clear()
            await self._filled.wait()
        frames = list(self._outbox)
        self._outbox.clear()
        self._characters = 0
        self._roomy.set()
        return frames

    async def room(self) -> None:
        """Wait until the outbox is no longer full: whoever does not read may not ask either."""
        await self._roomy.wait()

    @property
    def full(self) -> bool:
        return len(self._outbox) >= self._max_frames or self._characters >= self._max_characters

    def reply(self, message: Message) -> None:
        """Queue an answer to this client alone."""
        message.ts = timestamp()
        self.push(encode(message).decode())

    def push(self, frame: str) -> None:
        if self.closed:
            return
        self._outbox.append(frame)
        self._characters += len(frame)
        if self.full:
            self._roomy.clear()
        self._filled.set()

    def offer(self, run: "Run", seq: int, frame: str) -> None:
        """Queue a broadcast, or take this client off the run when it is too far behind."""
        if not self.full:
            self.push(frame)
            return
        run.subscribers.pop(self, None)
        self.runs.discard(run.id)
        self.reply(
            Error(
                code="SUBSCRIBER_BEHIND",
                message=f"Too slow for run {run.id}: nothing after event {seq - 1} was queued. "
                f"Send subscribe with fromSeq {seq} to go on.",
                run_id=run.id,
                next_seq=seq,
            )
        )

"""What a topic's terminal showed, the latest part of it, for people who look on.

Writing costs the same whether anybody reads. A reader takes what is new at its own pace and is told
when something is no longer kept.
"""

import asyncio
import codecs
from collections import deque
from time import monotonic
from typing import Final, NamedTuple
from uuid import uuid4

from msgspec import UNSET

from stringd.system.clock import timestamp
from stringd.wire.terminal import (
    Cleared,
    Missed,
    Printed,
    Resized,
    ShownEvent,
    TerminalBegan,
    TerminalEnded,
)

KEPT_CHARACTERS: Final = 256 * 1024
EVENT_CHARACTERS: Final = 64
"""What an event weighs besides its text, so that many small ones are bounded too."""
COMMAND_CHARACTERS: Final = 4_000
_UTF8: Final = codecs.getincrementaldecoder("utf-8")


class Shown(NamedTuple):
    """Events after a position, neighbouring text joined, and the position behind them."""

    events: list[ShownEvent]
    number: int


class Scrollback:
    """One per topic; its shells come and go."""

    def __init__(self, limit: int = KEPT_CHARACTERS) -> None:
        self.life = uuid4().hex[:12]
        """Positions of another life say nothing about this one."""
        self.number = 0
        """Of the latest event."""
        self._limit = limit
        self._events: deque[ShownEvent] = deque()
        self._size = 0
        self._commands = 0
        self._began = 0.0
        self._running: tuple[int, TerminalBegan] | None = None
        """The command that runs and its place: known however much it prints."""
        self._decoder = _UTF8("replace")
        self._waiting: set[asyncio.Future[None]] = set()

    def began(
        self, text: str, directory: str, by: str, screen: tuple[int, int] | None = None
    ) -> None:
        """A command was given to the shell; it may draw on a `screen`, so many columns and rows."""
        self._commands += 1
        self._began = monotonic()
        self._decoder.reset()
        shown = text if len(text) <= COMMAND_CHARACTERS else f"{text[:COMMAND_CHARACTERS]}…"
        event = TerminalBegan(
            number=self._commands,
            text=shown,
            directory=directory,
            by=by,
            ts=timestamp(),
            screen=screen or UNSET,
        )
        self._running = (self.number + 1, event)
        self._add(event)

    def printed(self, data: bytes) -> None:
        """Something reached the terminal."""
        text = self._decoder.decode(data)
        if text:
            self._add(Printed(text=text[-self._limit :]))

    def resized(self, screen: tuple[int, int]) -> None:
        """The screen of the running command has another size."""
        self._add(Resized(screen=screen))

    def ended(self, status: int, directory: str) -> None:
        """The command that began last is over."""
        self._running = None
        spent = round((monotonic() - self._began) * 1000, 1)
        self._add(
            TerminalEnded(number=self._commands, status=status, directory=directory, ms=spent)
        )

    def clear(self) -> None:
        """Forget everything; readers hear of it."""
        self._events.clear()
        self._size = 0
        self._running = None
        self._add(Cleared())

    def read(self, after: int = 0) -> Shown:
        """What came after a position. A text is as long as all that is kept at most."""
        oldest = self.number - len(self._events)
        events: list[ShownEvent] = [Missed()] if after < oldest else []
        if self._running is not None and after < self._running[0] <= oldest:
            events += [self._running[1], Missed()]
        pieces: list[str] = []
        skipped = max(0, after - oldest)
        for index, event in enumerate(self._events):
            if index < skipped:
                continue
            if isinstance(event, Printed):
                pieces.append(event.text)
                continue
            if pieces:
                events.append(Printed(text="".join(pieces)))
                pieces.clear()
            events.append(event)
        if pieces:
            events.append(Printed(text="".join(pieces)))
        return Shown(events, self.number)

    def more(self) -> asyncio.Future[None]:
        """A future that resolves with the next event; `give_up` ends the wait before."""
        future = asyncio.get_running_loop().create_future()
        self._waiting.add(future)
        return future

    def give_up(self, waiting: asyncio.Future[None]) -> None:
        """Nobody waits for this any more."""
        self._waiting.discard(waiting)

    def _add(self, event: ShownEvent) -> None:
        self._events.append(event)
        self.number += 1
        self._size += _weight(event)
        while self._size > self._limit and len(self._events) > 1:
            self._size -= _weight(self._events.popleft())
        if self._waiting:
            waiting, self._waiting = self._waiting, set()
            for each in waiting:
                if not each.done():
                    each.set_result(None)


def _weight(event: ShownEvent) -> int:
    text = event.text if isinstance(event, Printed | TerminalBegan) else ""
    return len(text) + EVENT_CHARACTERS

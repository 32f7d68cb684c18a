"""`GET /topics/<user>/<topic>/output`: the terminal of a bash topic as it prints, as events."""

import asyncio
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qs

from stringd.server.http.messages import (
    CORS_HEADERS,
    ClientGone,
    HttpError,
    HttpRequest,
    HttpResponse,
)
from stringd.server.topic_view import OUTPUT, find_topic
from stringd.wire.exec import SSE_HEADERS
from stringd.wire.feed import KEEP_ALIVE, FeedQueryError, parse_position
from stringd.wire.terminal import Cleared, Missed, Printed, ShownEvent, encode_shown

if TYPE_CHECKING:
    from stringd.runtime.runtime import Runtime
    from stringd.runtime.shell.scrollback import Scrollback
    from stringd.server.feed.ring import Feed

KEEP_ALIVE_SECONDS: Final = 15.0
PAUSE_SECONDS: Final = 0.1
"""Between two pieces: a program that prints without end must not flood who looks on."""
PIECE_CHARACTERS: Final = 64 * 1024
"""Of one piece; of more, only the end is shown."""

_HEAD: Final = SSE_HEADERS + CORS_HEADERS


class TopicOutputEndpoint:
    """Streams until its client leaves, the topic is closed for good or the daemon stops."""

    def __init__(self, runtime: "Runtime", feed: "Feed") -> None:
        self._runtime = runtime
        self._feed = feed

    async def __call__(self, request: HttpRequest) -> HttpResponse:
        slot, session = find_topic(self._runtime, request.path.removesuffix(OUTPUT))
        if slot.topic.type != "bash":
            raise HttpError(404, f"{slot.topic} has no terminal")
        scrollback = session.terminal()
        number, first = _start(request, scrollback)
        peer = request.peer
        left = peer.left()
        more, news = scrollback.more(), self._feed.more()
        peer.stream(_HEAD)
        await peer.write(first or KEEP_ALIVE)
        try:
            while not left.done() and not self._feed.closed and slot.session is session:
                if number != scrollback.number:
                    shown = scrollback.read(number)
                    number = shown.number
                    await peer.write(_encoded(shown.events, f"{scrollback.life}-{number}"))
                    await asyncio.wait((left,), timeout=PAUSE_SECONDS)
                    continue
                more = scrollback.more() if more.done() else more
                news = self._feed.more() if news.done() else news
                done, _ = await asyncio.wait(
                    (more, news, left),
                    timeout=KEEP_ALIVE_SECONDS,
                    return_when=asyncio.FIRST_COMPLETED,
                )
                if not done:
                    await peer.write(KEEP_ALIVE)
        finally:
            scrollback.give_up(more)
            self._feed.give_up(news)
        if left.done():
            raise ClientGone
        return HttpResponse(200, b"", b"")


def _start(request: HttpRequest, scrollback: "Scrollback") -> tuple[int, bytes]:
    """Where a reader begins, and what it has to hear first. Raises `HttpError`."""
    query = parse_qs(request.query.decode("utf-8", "replace"))
    after = request.header(b"last-event-id") or query.get("after", [""])[0].strip()
    try:
        position = parse_position(after) if after else None
    except FeedQueryError as error:
        raise HttpError(400, str(error)) from error
    if position is None:
        return 0, b""
    if position.boot != scrollback.life:
        return 0, encode_shown(f"{scrollback.life}-0", Cleared())
    return min(position.number, scrollback.number), b""


def _encoded(events: "list[ShownEvent]", position: str) -> bytes:
    """The events of one piece, at most its size of text: the end of it."""
    room = PIECE_CHARACTERS
    kept: list[ShownEvent] = []
    for event in reversed(events):
        if not isinstance(event, Printed):
            kept.append(event)
        elif room > 0:
            kept.append(Printed(text=event.text[-room:]))
            if len(event.text) > room:
                kept.append(Missed())
            room -= len(event.text)
    return b"".join(encode_shown(position, event) for event in reversed(kept))

"""`GET /events`: the feed as a stream of server-sent events, from any position still kept."""

import asyncio
from typing import Final
from urllib.parse import parse_qs

from stringd.server.feed.ring import Feed
from stringd.server.http.messages import (
    CORS_HEADERS,
    ClientGone,
    HttpError,
    HttpRequest,
    HttpResponse,
)
from stringd.wire.exec import SSE_HEADERS
from stringd.wire.feed import KEEP_ALIVE, FeedQueryError, parse_kinds, parse_position

KEEP_ALIVE_SECONDS: Final = 15.0

_HEAD: Final = SSE_HEADERS + CORS_HEADERS


class FeedEndpoint:
    """Streams until its client leaves or the daemon stops."""

    def __init__(self, feed: Feed) -> None:
        self._feed = feed

    async def __call__(self, request: HttpRequest) -> HttpResponse:
        query = parse_qs(request.query.decode("utf-8", "replace"))
        # A browser that connects again says where it was; the address is what it began with.
        after = request.header(b"last-event-id") or query.get("after", [""])[0].strip()
        try:
            kinds = parse_kinds(",".join(query.get("types", [])))
            position = parse_position(after) if after else None
        except FeedQueryError as error:
            raise HttpError(400, str(error)) from error
        number, first = self._feed.start(position)
        peer = request.peer
        left = peer.left()
        peer.stream(_HEAD)
        await peer.write(first or KEEP_ALIVE)
        self._feed.enter()
        try:
            while not left.done() and not self._feed.closed:
                batch = self._feed.read(number, kinds)
                number = batch.number
                if batch.data:
                    await peer.write(batch.data)
                elif number == self._feed.number:
                    await self._wait(request, left)
            if left.done():
                raise ClientGone
            return HttpResponse(200, b"", b"")
        finally:
            self._feed.leave()

    async def _wait(self, request: HttpRequest, left: "asyncio.Future[None]") -> None:
        """Return when there is something new or nobody to tell."""
        more = self._feed.more()
        try:
            done, _ = await asyncio.wait(
                (more, left), timeout=KEEP_ALIVE_SECONDS, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            self._feed.give_up(more)
        if not done:
            await request.peer.write(KEEP_ALIVE)

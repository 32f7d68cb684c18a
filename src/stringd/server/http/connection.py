"""One HTTP/1.1 connection, from its beginning to its end.

Whatever cannot be parsed, is too large, stalls or ends half-way is answered in JSON like every
other error. A WebSocket upgrade hands the connection over.
"""

import asyncio
from collections.abc import Callable
from typing import Final, cast

import httptools

from stringd.server.http.budget import Place
from stringd.server.http.crowd import Crowd
from stringd.server.http.messages import (
    MAX_BODY_BYTES,
    HttpError,
    HttpRequest,
    HttpResponse,
    error_response,
    too_busy,
)
from stringd.server.http.reader import Application
from stringd.server.http.responder import Responder, whole_and_last
from stringd.server.pages import speaker_of
from stringd.server.visitors import Visitor
from stringd.system.lineage import Speaker

STALL_SECONDS: Final = 30.0
"""How long the rest of a begun request may take to go on."""

REQUEST_SECONDS: Final = 120.0
"""How long a request may take to arrive as a whole."""

UNREAD_SECONDS: Final = 120.0
"""How long an answer may wait for a client that reads nothing of it."""

KEEP_ALIVE_SECONDS: Final = 75.0
"""How long an idle connection is kept for the next request."""

LINGER_SECONDS: Final = 2.0
"""How long a refused client may go on sending; closing at once would destroy its answer."""

LINGER_BYTES: Final = 2 * MAX_BODY_BYTES
"""How much of it is read, into nothing."""

_SLOW_SECONDS: Final = 5.0
"""A request that takes longer to arrive gives way when there are too many connections."""

Upgrade = Callable[[asyncio.Transport, bytes, Speaker | None, Place], None]
"""Takes a transport and its place over, with the upgrade request and what followed it."""

Look = Callable[[asyncio.BaseTransport], Visitor]
"""Finds out who has connected."""


class HttpConnection(Responder):
    """The state of one connection in the crowd of all. Without `look` everybody is let in."""

    __slots__ = (
        "_dismissed",
        "_dropped_bytes",
        "_look",
        "_upgrade",
        "visitor",
    )

    def __init__(
        self, app: Application, crowd: Crowd, upgrade: Upgrade, look: Look | None = None
    ) -> None:
        super().__init__(app, crowd)
        self._upgrade = upgrade
        self._look = look
        self.visitor: Visitor | None = None
        self._dismissed = False
        self._dropped_bytes = 0

    @property
    def uid(self) -> int | None:
        return self._place.uid

    # What the event loop calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        if self._look is not None:
            self.visitor = self._look(transport)
            self._deaf = self.visitor.refusal is not None
        place = self._crowd.admit(self.visitor, transport.get_extra_info("socket").fileno())
        if place is None:
            self._deaf = True
            self._bid_farewell(self._unwelcome())
        else:
            self._place = place
            self._crowd.connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - the loop names it
        self._closing = True
        self._closed = True
        self._leave()
        self._forget()
        for waiting in self._pipeline:
            if isinstance(waiting, HttpRequest):
                self._place.release(waiting.held)
        self._pipeline.clear()
        self._client_left()
        self._make_room()

    def eof_received(self) -> bool:
        self._outbox.flush()
        if not self._deaf and (self._receiving or self._head_bytes):
            self._refuse(400, "Request ended before it was complete")
        if self._current is None and not self._pipeline:
            return False
        # Half-closed: whoever waits in a queue has left, whoever already runs may still read.
        self._half_closed = True
        if self._left is not None and self._framing is None:
            return False
        if self._current is not None and not self._pipeline:
            self._current.keep_alive = False
        return True

    # Refusing, and ending.

    def _leave(self) -> None:
        """Make room for others, even before the socket is gone."""
        self._crowd.connections.discard(self)
        self._crowd.read(self)
        self._place.leave()

    def stop(self) -> None:
        """Close now if idle, else after the answer under way."""
        self._closing = True
        if self._current is None:
            self._end()

    def cut_off(self) -> None:
        """End at once; whatever the peer has not read is lost."""
        self._closing = True
        self._leave()
        self._transport.abort()

    def sweep(self, now: float) -> None:
        """Close what has been idle, stalled or unread for too long."""
        if self._waits_for_reader(now):
            self.cut_off()
        elif self._current is not None or self._pipeline or self._closing or self._write_paused:
            return
        elif self._receiving or self._head_bytes:
            if now - self._last_activity > STALL_SECONDS:
                self._refuse(408, f"Request did not go on for {STALL_SECONDS:.0f} seconds")
            elif self._receiving and now - self._began > REQUEST_SECONDS:
                self._refuse(408, f"Request was not complete after {REQUEST_SECONDS:.0f} seconds")
        elif now - self._last_activity > (STALL_SECONDS if self._deaf else KEEP_ALIVE_SECONDS):
            self._end()

    def _waits_for_reader(self, now: float) -> bool:
        """Whether nothing of an answer was read for too long."""
        if not self._write_paused and not self._transport.is_closing():
            return False
        size, since = self._unread
        left = self._transport.get_write_buffer_size()
        if left != size:
            self._unread = (left, now)
            return False
        return now - max(since, self._last_activity) > UNREAD_SECONDS

    def idleness(self, now: float) -> tuple[int, float] | None:
        """How soon it should give way, lowest first; None while it is answered."""
        if self._current is not None or self._pipeline or self._closing:
            return None
        if self._write_paused or self._receiving or self._head_bytes:
            since = self._unread[1] if self._write_paused else self._began
            return (1, since) if now - since > _SLOW_SECONDS else None
        return 0, self._last_activity

    def give_way(self) -> None:
        """End because others need the room."""
        if self._receiving:
            self._bid_farewell(error_response(too_busy()))
        elif self._write_paused:
            self.cut_off()
        else:
            self._end()
        self._leave()

    def _unwelcome(self) -> HttpResponse:
        """The answer for a connection that gets no place."""
        refusal = self.visitor.refusal if self.visitor is not None else None
        error = HttpError(403, refusal) if refusal else too_busy()
        return error_response(error)

    def _bid_farewell(self, response: HttpResponse) -> None:
        """Answer and close at once; whether the client reads it is its own luck."""
        self._write_now(whole_and_last(response))
        self._end()

    def _change_protocol(self, rest: bytes) -> None:
        """After a request to upgrade: a WebSocket is taken, other offers are passed over."""
        method = self._parser.get_method()
        path = self._url.partition(b"?")[0]
        if method == b"CONNECT":
            self._refuse(400, "This is not a proxy: CONNECT is not offered")
        elif self._headers.get(b"upgrade", b"").lower() != b"websocket":
            # Clients that would like `h2c` are content with HTTP/1.1: read it as if unasked.
            offer = (b"upgrade", b"connection", b"http2-settings")
            self._parser = httptools.HttpRequestParser(self)
            self.data_received(self._head_again(method, leave_out=offer) + rest)
        elif not self._answers_nothing():
            self._refuse(400, "A WebSocket begins when earlier requests have been answered")
        elif (error := self._app.judge_upgrade(method, path, self._headers)) is not None:
            self._refuse(error.status, str(error))
        elif not self._place.become_websocket():
            self._refuse_with(error_response(too_busy()))
        else:
            # The transport is another's from here on: nothing is read or written by us.
            self._closing = True
            self._crowd.connections.discard(self)
            self._outbox.flush()
            head = self._head_again(method)
            speaker = speaker_of(self.visitor, self._headers)
            self._upgrade(self._transport, head + rest, speaker, self._place)

    def _encourage(self, expectation: bytes) -> None:
        if expectation.lower() == b"100-continue" and self._answers_nothing():
            self._write_now(b"HTTP/1.1 100 Continue\r\n\r\n")

    def _refuse_body(self, error: HttpError, *, keep_alive: bool = True) -> None:
        """Answer at once, then read the rest into nothing so that the client sees it."""
        if self._discarding:
            return
        self._discarding = True
        self._drop_body()
        if keep_alive and self._parser.should_keep_alive() and self._answers_nothing():
            request = HttpRequest("POST", "", b"", {}, b"", self)
            self._send(request, error_response(error))
        else:
            self._refuse_with(error_response(error))

    def _ignore(self, data: bytes) -> None:
        """Answer the first bytes of somebody who may ask nothing; the rest goes unread."""
        if not self._dismissed and self.visitor is not None and self.visitor.refusal is not None:
            self._dismiss(error_response(HttpError(403, self.visitor.refusal)))
        self._dropped_bytes += len(data)
        if self._dropped_bytes > LINGER_BYTES and not self._closing:
            self._transport.pause_reading()

    def _refuse(self, status: int, reason: str) -> None:
        """Answer and end, after the answers that are owed before it."""
        self._refuse_with(error_response(HttpError(status, reason)))

    def _refuse_with(self, response: HttpResponse) -> None:
        self._deaf = True
        self._unparsed = b""
        self._receiving = False
        self._head_bytes = 0
        self._drop_body()
        if self._answers_nothing():
            self._dismiss(response)
        else:
            self._pipeline.append(response)
            self._wait()

    def _dismiss(self, response: HttpResponse) -> None:
        if self._transport.is_closing():
            return
        self._dismissed = True
        self._deaf = True
        self._last_activity = self._loop.time()
        self._write_now(whole_and_last(response))
        self._transport.write_eof()
        self._transport.resume_reading()
        self._loop.call_later(LINGER_SECONDS, self._end)

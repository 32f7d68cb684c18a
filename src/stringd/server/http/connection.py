"""One HTTP/1.1 connection, on httptools.

Requests reach the application whole; an answer that is ready at once leaves in the same loop
turn and one packet, without a task. Whatever cannot be parsed, is too large, stalls or ends
half-way is answered in JSON like every other error. Pipelined requests are answered in order.
A WebSocket upgrade hands the connection over.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final, Protocol, cast
from urllib.parse import unquote

import httptools

from stringd.server.http.messages import (
    MAX_BODY_BYTES,
    STATUS_LINES,
    ClientGone,
    HttpError,
    HttpRequest,
    HttpResponse,
    error_response,
    text_response,
)
from stringd.server.http.outbox import Outbox
from stringd.server.visitors import Visitor

MAX_HEAD_BYTES: Final = 64 * 1024
"""Request line and headers together; four times what Node allows."""

STALL_SECONDS: Final = 30.0
"""How long the rest of a begun request may take to go on."""

KEEP_ALIVE_SECONDS: Final = 75.0
"""How long an idle connection is kept for the next request."""

LINGER_SECONDS: Final = 2.0
"""How long a refused client may go on sending; closing at once would destroy its answer."""


class Application(Protocol):
    """What a connection asks to answer a request."""

    def handle(self, request: HttpRequest) -> HttpResponse | Awaitable[HttpResponse]:
        """Answer now, or later. Raises only `ClientGone`, and only later."""

    def refusal(self, headers: dict[bytes, bytes]) -> str | None:
        """Why a WebSocket upgrade is refused; None when it may pass."""


_KEEP: Final = b"Connection: keep-alive\r\n"
_CLOSE: Final = b"Connection: close\r\n"
_CHUNKED: Final = _KEEP + b"Transfer-Encoding: chunked\r\n"

Upgrade = Callable[[asyncio.Transport, bytes, Visitor | None], None]
"""Takes a transport over, given the bytes of the upgrade request and what followed it."""

Look = Callable[[asyncio.BaseTransport], Visitor]
"""Finds out who has connected."""


class _HeadTooLargeError(Exception):
    pass


class HttpConnection(asyncio.Protocol):
    """The state of one connection.

    `connections` is the set it keeps itself in, `outbox` what it shares with the others. Without
    `look` everybody is let in.
    """

    def __init__(
        self,
        app: Application,
        loop: asyncio.AbstractEventLoop,
        connections: "set[HttpConnection]",
        tasks: set[asyncio.Task[None]],
        upgrade: Upgrade,
        outbox: Outbox | None = None,
        look: Look | None = None,
    ) -> None:
        self._app = app
        self._loop = loop
        self._connections = connections
        self._tasks = tasks
        self._upgrade = upgrade
        self._outbox = outbox or Outbox(loop)
        self._look = look
        self.visitor: Visitor | None = None
        self._parser = httptools.HttpRequestParser(self)
        self._transport: asyncio.Transport
        self._last_activity = loop.time()

        # The request being received.
        self._receiving = False
        self._in_head = True
        self._head_bytes = 0
        self._url = b""
        self._headers: dict[bytes, bytes] = {}
        self._body: list[bytes] = []
        self._body_bytes = 0
        self._refused = False

        # The request being answered, and those that wait behind it.
        self._current: HttpRequest | None = None
        self._framing: bytes | None = None
        self._left: asyncio.Future[None] | None = None
        self._room: asyncio.Future[None] | None = None
        self._pipeline: deque[HttpRequest] = deque()
        self._write_paused = False
        self._half_closed = False
        self._closing = False
        self._closed = False
        self._deaf = False

    # What the event loop calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._connections.add(self)
        if self._look is not None:
            self.visitor = self._look(transport)
            self._deaf = self.visitor.refusal is not None

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - the loop names it
        self._connections.discard(self)
        self._closing = True
        self._closed = True
        self._pipeline.clear()
        self._client_left()
        self._make_room()

    def data_received(self, data: bytes) -> None:
        if self._deaf:
            self._turn_away()
            return
        self._last_activity = self._loop.time()
        if self._in_head:
            self._head_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as pause:
            self._change_protocol(data[pause.args[0] :])
        except httptools.HttpParserError as error:
            self._refuse_unparsable(error)
        else:
            if self._in_head and self._head_bytes > MAX_HEAD_BYTES:
                self._refuse_large_head()

    def eof_received(self) -> bool:
        self._outbox.flush()
        if self._deaf:
            return False
        if self._receiving or self._head_bytes:
            self._refuse(400, "Request ended before it was complete")
            return False
        if self._current is None:
            return False
        # Half-closed: whoever waits in a queue has left, whoever already runs may still read.
        self._half_closed = True
        if self._left is not None and self._framing is None:
            return False
        self._current.keep_alive = False
        return True

    def pause_writing(self) -> None:
        self._write_paused = True

    def resume_writing(self) -> None:
        self._write_paused = False
        self._make_room()
        self._next()

    # What the parser calls.

    def on_message_begin(self) -> None:
        self._receiving = True
        self._url = b""
        self._headers = {}
        self._body = []
        self._body_bytes = 0
        self._refused = False

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        key = name.lower()
        headers = self._headers
        # Joined, a repeated Host or Origin is no name of this machine any more.
        headers[key] = b"%b, %b" % (headers[key], value) if key in headers else value

    def on_headers_complete(self) -> None:
        if self._head_bytes > MAX_HEAD_BYTES and self._size_of_head() > MAX_HEAD_BYTES:
            raise _HeadTooLargeError
        self._in_head = False
        self._head_bytes = 0
        headers = self._headers
        declared = headers.get(b"content-length")
        if declared is not None and len(declared) > 7 and int(declared) > MAX_BODY_BYTES:
            # Who asked before sending will not send now: the next bytes would be another request.
            self._refuse_body(keep_alive=b"expect" not in headers)
        elif b"expect" in headers:
            self._encourage(headers[b"expect"])

    def _encourage(self, expectation: bytes) -> None:
        if expectation.lower() == b"100-continue" and self._current is None:
            self._write_now(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, body: bytes) -> None:
        self._body_bytes += len(body)
        if self._body_bytes > MAX_BODY_BYTES:
            self._body = []
            self._refuse_body()
        else:
            self._body.append(body)

    def on_message_complete(self) -> None:
        self._receiving = False
        self._in_head = True
        if self._refused or self._parser.should_upgrade():
            return
        url = httptools.parse_url(self._url)
        if url.host is not None:
            # A whole URL says whom the request is for; the Host header then counts no more.
            self._headers[b"host"] = self._url.partition(b"//")[2].partition(b"/")[0]
        path = (url.path or b"/").decode("ascii")
        body = self._body
        request = HttpRequest(
            self._parser.get_method().decode("ascii"),
            unquote(path) if "%" in path else path,
            url.query or b"",
            self._headers,
            body[0] if len(body) == 1 else b"".join(body),
            self,
        )
        request.keep_alive = self._parser.should_keep_alive()
        if self._current is not None or self._write_paused:
            self._pipeline.append(request)
            self._transport.pause_reading()
        else:
            self._serve(request)

    # Answering.

    def _serve(self, request: HttpRequest) -> None:
        self._current = request
        answer = self._app.handle(request)
        if isinstance(answer, HttpResponse):
            self._send(request, answer)
        else:
            task = self._loop.create_task(self._finish(request, answer))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _finish(self, request: HttpRequest, answer: Awaitable[HttpResponse]) -> None:
        try:
            response = await answer
        except ClientGone:
            self._end()
            return
        except asyncio.CancelledError:
            # Stopping: the missing end of the stream tells the client.
            self._end()
            raise
        self._send(request, response)

    def _send(self, request: HttpRequest, response: HttpResponse) -> None:
        if self._closed:
            return
        body = response.body
        if self._framing is not None:
            self._write_piece(body)
            if self._framing is _CHUNKED:
                self._write_now(b"0\r\n\r\n")
            self._framing = None
        else:
            connection = _KEEP if request.keep_alive or response.says_keep_alive else _CLOSE
            shown = b"" if request.method == "HEAD" else body
            self._outbox.put(self._transport, _whole(response, connection, shown))
        self._last_activity = self._loop.time()
        self._current = None
        self._left = None
        if not request.keep_alive or self._closing:
            self._end()
        elif self._pipeline:
            self._next()

    def stream(self, head: bytes, status: int = 200) -> None:
        request = self._current
        assert request is not None
        self._framing = _CHUNKED
        if self._parser.get_http_version() == "1.0":
            request.keep_alive = False
            self._framing = _CLOSE
        self._write_now(b"%b%b%b\r\n" % (STATUS_LINES[status], head, self._framing))

    async def write(self, data: bytes) -> None:
        """A piece of a streamed body; returns when the peer has room for the next."""
        self._write_piece(data)
        self._last_activity = self._loop.time()
        if self._write_paused and not self._closed:
            self._room = self._loop.create_future()
            await asyncio.wait((self._room,))

    def _write_piece(self, data: bytes) -> None:
        if data and not self._closed:
            framed = self._framing is _CHUNKED
            self._write_now(b"%x\r\n%b\r\n" % (len(data), data) if framed else data)

    def _make_room(self) -> None:
        if self._room is not None and not self._room.done():
            self._room.set_result(None)

    def _next(self) -> None:
        """Go on with a pipelined request, if one waits and the peer reads."""
        if self._current is None and not self._write_paused and not self._closing:
            if self._pipeline:
                self._serve(self._pipeline.popleft())
            if not self._pipeline:
                self._transport.resume_reading()

    def left(self) -> asyncio.Future[None]:
        if self._left is None:
            self._left = self._loop.create_future()
            if self._half_closed or self._closing:
                self._left.set_result(None)
        return self._left

    def _client_left(self) -> None:
        if self._left is not None and not self._left.done():
            self._left.set_result(None)

    def _write_now(self, data: bytes) -> None:
        self._outbox.flush()
        self._transport.write(data)

    # Refusing, and ending.

    def _end(self) -> None:
        self._outbox.flush()
        self._transport.close()

    def stop(self) -> None:
        """Close now if idle, else after the answer under way."""
        self._closing = True
        if self._current is None:
            self._end()

    def sweep(self, now: float) -> None:
        """Close what has been idle or stalled for too long."""
        quiet = now - self._last_activity
        if self._deaf:
            if quiet > STALL_SECONDS:
                self._end()
            return
        if self._receiving or self._head_bytes:
            if quiet > STALL_SECONDS:
                self._refuse(408, f"Request did not go on for {STALL_SECONDS:.0f} seconds")
        elif self._current is None and quiet > KEEP_ALIVE_SECONDS:
            self._end()

    def _change_protocol(self, rest: bytes) -> None:
        """After a request to upgrade: a WebSocket is taken, other offers are passed over."""
        method = self._parser.get_method()
        path = self._url.partition(b"?")[0]
        if method == b"CONNECT":
            self._refuse(400, "This is no proxy: CONNECT is not offered")
        elif self._headers.get(b"upgrade", b"").lower() != b"websocket":
            # Clients that would like `h2c` are content with HTTP/1.1: read it as if unasked.
            offer = (b"upgrade", b"connection", b"http2-settings")
            self._parser = httptools.HttpRequestParser(self)
            self.data_received(self._head_again(method, leave_out=offer) + rest)
        elif path != b"/ws" or method != b"GET":
            self._refuse(400, "WebSocket is offered only at GET /ws")
        elif (refusal := self._app.refusal(self._headers)) is not None:
            self._refuse(403, refusal)
        else:
            self._connections.discard(self)
            self._outbox.flush()
            self._upgrade(self._transport, self._head_again(method) + rest, self.visitor)

    def _head_again(self, method: bytes, leave_out: tuple[bytes, ...] = ()) -> bytes:
        lines = [b"%b %b HTTP/1.1\r\n" % (method, self._url)]
        headers = self._headers.items()
        lines += [b"%b: %b\r\n" % header for header in headers if header[0] not in leave_out]
        return b"".join([*lines, b"\r\n"])

    def _size_of_head(self) -> int:
        headers = self._headers.items()
        return len(self._url) + sum(len(name) + len(value) + 4 for name, value in headers)

    def _refuse_unparsable(self, error: httptools.HttpParserError) -> None:
        if isinstance(error.__context__, _HeadTooLargeError):
            self._refuse_large_head()
        elif isinstance(error, httptools.HttpParserInvalidMethodError):
            self._refuse(400, "Malformed HTTP request: unknown method")
        elif isinstance(error.__context__, httptools.HttpParserInvalidURLError | ValueError):
            self._refuse(400, "Malformed HTTP request: unusable URL")
        else:
            self._refuse(400, f"Malformed HTTP request: {error}")

    def _refuse_large_head(self) -> None:
        self._refuse(431, f"Request headers exceed {MAX_HEAD_BYTES} bytes")

    def _refuse_body(self, *, keep_alive: bool = True) -> None:
        """Answer 413 at once, then read the rest into nothing so that the client sees it."""
        reason = f"Request body exceeds {MAX_BODY_BYTES} bytes"
        if self._current is not None:
            self._end()
        elif not self._refused:
            self._refused = True
            if keep_alive and self._parser.should_keep_alive():
                request = HttpRequest("POST", "", b"", {}, b"", self)
                self._send(request, error_response(HttpError(413, reason)))
            else:
                self._refuse(413, reason)

    def _turn_away(self) -> None:
        """Answer the first bytes of somebody who may ask nothing; the rest goes unread."""
        if self.visitor is not None and self.visitor.refusal is not None and not self._refused:
            self._refused = True
            self._refuse(403, self.visitor.refusal)

    def _refuse(self, status: int, reason: str) -> None:
        """Answer and end, unless another answer is already under way."""
        if self._current is not None or self._transport.is_closing():
            self._end()
            return
        response = error_response(HttpError(status, reason))
        self._write_now(_whole(response, _CLOSE, response.body))
        self._transport.write_eof()
        self._deaf = True
        self._loop.call_later(LINGER_SECONDS, self._end)


def _whole(response: HttpResponse, connection: bytes, body: bytes) -> bytes:
    return b"%b%b%b%b%b" % (
        STATUS_LINES[response.status],
        response.head,
        connection,
        b"\r\n" if response.status == 204 else b"Content-Length: %d\r\n\r\n" % len(response.body),
        body,
    )


def not_an_upgrade() -> HttpResponse:
    """What `/ws` answers to a request that does not upgrade."""
    return text_response(400, "WebSocket upgrade failed")

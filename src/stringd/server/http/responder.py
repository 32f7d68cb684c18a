"""The answering half of an HTTP/1.1 connection: requests in order, answers at the peer's pace.

Requests reach the application whole; an answer that is ready at once leaves in the same loop
turn and one packet, without a task. Pipelined requests are answered in order, and other connections
get their turn between them.
"""

import asyncio
from abc import abstractmethod
from collections import deque
from collections.abc import Awaitable
from typing import Final

from stringd.server.http.budget import NOWHERE
from stringd.server.http.crowd import Crowd
from stringd.server.http.messages import (
    STATUS_LINES,
    ClientGone,
    HttpRequest,
    HttpResponse,
    error_response,
    too_busy,
)
from stringd.server.http.reader import Application, RequestReader

TURN_REQUESTS: Final = 16
"""Pipelined requests answered before other connections get their turn."""

LARGE_ANSWER_BYTES: Final = 64 * 1024
"""Answers above this are sent at once, to learn whether the client reads."""

SOON_SECONDS: Final = 0.02
"""An answer that is whole by then leaves as one piece."""

_ALWAYS_ANSWERED: Final = ("/health", "/shutdown")

_KEEP: Final = b"Connection: keep-alive\r\n"
_CLOSE: Final = b"Connection: close\r\n"
_CHUNKED: Final = _KEEP + b"Transfer-Encoding: chunked\r\n"


class Responder(RequestReader):
    """Answers what its reader received; how clients are turned away its heir decides."""

    __slots__ = (
        "_closed",
        "_closing",
        "_crowd",
        "_current",
        "_framing",
        "_half_closed",
        "_head",
        "_left",
        "_outbox",
        "_pipeline",
        "_room",
        "_scheduled",
        "_transport",
        "_unread",
        "_write_paused",
    )

    def __init__(self, app: Application, crowd: Crowd) -> None:
        super().__init__(app, asyncio.get_running_loop(), NOWHERE)
        self._crowd = crowd
        self._outbox = crowd.outbox
        self._transport: asyncio.Transport

        # The request being answered, and what waits behind it: requests, and one refusal.
        self._current: HttpRequest | None = None
        self._framing: bytes | None = None
        self._head: asyncio.TimerHandle | None = None
        self._left: asyncio.Future[None] | None = None
        self._room: asyncio.Future[None] | None = None
        self._pipeline: deque[HttpRequest | HttpResponse] = deque()
        self._scheduled = False
        self._write_paused = False
        self._unread = (0, 0.0)
        self._half_closed = False
        self._closing = False
        self._closed = False

    @abstractmethod
    def _dismiss(self, response: HttpResponse) -> None:
        """Send this as the last answer."""

    @abstractmethod
    def cut_off(self) -> None:
        """End at once; whatever the peer has not read is lost."""

    def pause_writing(self) -> None:
        self._write_paused = True
        size = self._transport.get_write_buffer_size()
        self._unread = (size, self._loop.time())
        self._crowd.unread(self, size)

    def resume_writing(self) -> None:
        self._write_paused = False
        self._crowd.read(self)
        self._make_room()
        self._turn = 0
        self._go_on()

    def _accept(self, request: HttpRequest) -> None:
        if request.held:
            # Parsing it takes a while: others with as much to do come first.
            self._pipeline.append(request)
            self._transport.pause_reading()
            if self._current is None and not self._scheduled:
                self._scheduled = True
                self._crowd.rounds.add(self._take_turn)
        elif self._turn < TURN_REQUESTS and self._current is None and not self._write_paused:
            self._turn += 1
            self._serve(request)
        else:
            self._pipeline.append(request)
            self._wait()

    def _go_on(self) -> None:
        """Answer what waits and parse on, as far as the peer reads and others get their turn."""
        while self._current is None and not self._write_paused and not self._closing:
            if self._pipeline:
                if self._turn >= TURN_REQUESTS:
                    break
                waiting = self._pipeline.popleft()
                if isinstance(waiting, HttpResponse):
                    self._dismiss(waiting)
                    return
                self._turn += 1
                self._serve(waiting)
            elif self._unparsed:
                self._parse_slice()
            else:
                self._read_on()
                return
        if self._pipeline or self._unparsed:
            self._wait()

    def _wait(self) -> None:
        """Read nothing until what is here is answered."""
        if self._closing:
            return
        self._transport.pause_reading()
        if self._current is None and not self._write_paused and not self._scheduled:
            self._scheduled = True
            self._crowd.rounds.add(self._take_turn)

    def _let_others_read(self) -> None:
        if not self._closing:
            self._transport.pause_reading()
            self._crowd.rounds.add(self._read_more)

    def _read_more(self) -> None:
        if not self._closing and not self._pipeline and not self._unparsed:
            self._transport.resume_reading()

    def _take_turn(self) -> None:
        self._scheduled = False
        self._turn = 0
        self._go_on()

    def _read_on(self) -> None:
        if self._half_closed:
            self._end()
        else:
            # The time until now was ours.
            self._last_activity = self._began = self._loop.time()
            self._transport.resume_reading()

    def _serve(self, request: HttpRequest) -> None:
        self._current = request
        if self._place.busy and request.path not in _ALWAYS_ANSWERED:
            answer: HttpResponse | Awaitable[HttpResponse] = error_response(too_busy())
        else:
            answer = self._app.handle(request)
        if isinstance(answer, HttpResponse):
            if request.held:
                self._place.release(request.held)
            self._send(request, answer)
        else:
            self._place.begin_request()
            task = self._loop.create_task(self._finish(request, answer))
            self._crowd.tasks.add(task)
            task.add_done_callback(self._crowd.tasks.discard)

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
        finally:
            self._place.end_request()
            self._place.release(request.held)
        self._last_activity = self._loop.time()
        self._send(request, response)
        self._turn = 0
        self._go_on()

    def _send(self, request: HttpRequest, response: HttpResponse) -> None:
        if self._head is not None:
            self._head.cancel()
            self._head = None
        if self._closed:
            return
        body = response.body
        if self._framing is not None:
            if self._framing is _CHUNKED:
                last = _chunk(body) if body else b""
                self._write_now(last + b"0\r\n\r\n")
            elif body:
                self._write_now(body)
            self._framing = None
        else:
            connection = _KEEP if request.keep_alive or response.says_keep_alive else _CLOSE
            shown = b"" if request.method == "HEAD" else body
            whole = _whole(response, connection, shown)
            if len(whole) > LARGE_ANSWER_BYTES:
                self._write_now(whole)
            else:
                self._outbox.put(self._transport, whole)
        self._current = None
        self._left = None
        if not request.keep_alive or self._closing:
            self._end()

    def stream(self, head: bytes, status: int = 200) -> None:
        request = self._current
        assert request is not None
        self._framing = _CHUNKED
        if self._parser.get_http_version() == "1.0":
            request.keep_alive = False
            self._framing = _CLOSE
        self._write_now(b"%b%b%b\r\n" % (STATUS_LINES[status], head, self._framing))

    def stream_soon(self, head: bytes) -> None:
        request = self._current

        def show() -> None:
            if self._current is request and not self._closed:
                self._head = None
                self.stream(head)

        self._head = self._loop.call_later(SOON_SECONDS, show)

    async def write(self, data: bytes) -> None:
        """A piece of a streamed body; returns when the peer has room for the next."""
        self._write_piece(data)
        # The transport has its own; what waits long is not held twice.
        del data
        self._last_activity = self._loop.time()
        if self._write_paused and not self._closed:
            self._room = self._loop.create_future()
            await asyncio.wait((self._room,))

    def _write_piece(self, data: bytes) -> None:
        if data and not self._closed:
            self._write_now(_chunk(data) if self._framing is _CHUNKED else data)

    def _make_room(self) -> None:
        if self._room is not None and not self._room.done():
            self._room.set_result(None)

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

    def _answers_nothing(self) -> bool:
        return self._current is None and not self._pipeline

    def _end(self) -> None:
        self._closing = True
        self._outbox.flush()
        self._transport.close()


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def _whole(response: HttpResponse, connection: bytes, body: bytes) -> bytes:
    status = response.status
    length = b"\r\n" if status == 204 else b"Content-Length: %d\r\n\r\n" % len(response.body)
    return b"".join((STATUS_LINES[status], response.head, connection, length, body))


def whole_and_last(response: HttpResponse) -> bytes:
    """All of an answer after which the connection is closed."""
    return _whole(response, _CLOSE, response.body)

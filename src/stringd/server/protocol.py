"""uvicorn's HTTP protocol, with three differences.

What one loop turn writes leaves in one packet. A request that cannot be parsed, is too large in
its head, stalls or ends half-way is answered in JSON like every other error. A client that
closes its sending side after a whole request still gets its answer.
"""

import asyncio
from typing import Any, Final

import httptools
from uvicorn.protocols.http.httptools_impl import (
    STATUS_LINE,
    HttpToolsProtocol,
    RequestResponseCycle,
)

from stringd.server.http import CORS_HEADERS, encode_json

MAX_HEAD_BYTES: Final = 64 * 1024
"""Request line and headers together; four times what Node allows."""

STALL_SECONDS: Final = 30.0
"""How long the rest of a begun request may take to go on."""


class _HeadTooLarge(Exception):  # noqa: N818 - raised through the parser, never seen outside
    pass


class Cork:
    """A transport that joins the writes of one loop turn into one."""

    __slots__ = ("_chunks", "_loop", "_transport", "is_closing")

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._chunks: list[bytes] = []
        self.is_closing = transport.is_closing

    def write(self, data: bytes) -> None:
        if not self._chunks:
            self._loop.call_soon(self._flush)
        self._chunks.append(data)

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._flush()
        self._transport.set_protocol(protocol)

    def _flush(self) -> None:
        if self._chunks:
            chunks, self._chunks = self._chunks, []
            self._transport.write(b"".join(chunks))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class HttpProtocol(HttpToolsProtocol):
    """One connection."""

    _head_bytes = 0
    _in_head = True
    _in_body = False
    _stall: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(Cork(transport, self.loop))  # type: ignore[arg-type]

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel_stall()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._unset_keepalive_if_required()
        if self._stall is not None:
            self._cancel_stall()
        if self._in_head:
            self._head_bytes += len(data)
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._upgrade()
            return
        except httptools.HttpParserError as error:
            self._refuse_unparsable(error)
            return
        if self._in_head and self._head_bytes > MAX_HEAD_BYTES:
            self._refuse_large_head()
        elif self._in_body or self._head_bytes:
            self._stall = self.loop.call_later(STALL_SECONDS, self._stalled)

    def on_headers_complete(self) -> None:
        if self._head_bytes > MAX_HEAD_BYTES and self._size_of_head() > MAX_HEAD_BYTES:
            raise _HeadTooLarge
        self._in_head = False
        self._in_body = True
        self._head_bytes = 0
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._in_head = True
        self._in_body = False
        super().on_message_complete()

    def eof_received(self) -> bool | None:  # type: ignore[override]
        if self._in_body or self._head_bytes:
            self._refuse(400, "Request ended before it was complete")
            return None
        cycle = self._current_cycle()
        if cycle is None or cycle.response_complete:
            return None
        # Half-closed: whoever waits in a queue has left, whoever already runs may still read.
        cycle.scope["state"]["half_closed"] = True
        if cycle.scope["state"].get("waiting"):
            return None
        cycle.keep_alive = False
        return True

    def _current_cycle(self) -> RequestResponseCycle | None:
        """The request being answered; none before the first."""
        return self.cycle

    def _size_of_head(self) -> int:
        return len(self.url) + sum(len(name) + len(value) for name, value in self.headers)

    def _upgrade(self) -> None:
        if self._should_upgrade():
            self.handle_websocket_upgrade()
        else:
            self._refuse(400, "Unsupported protocol upgrade; only WebSocket at /ws is offered")

    def _refuse_unparsable(self, error: httptools.HttpParserError) -> None:
        if isinstance(error.__context__, _HeadTooLarge):
            self._refuse_large_head()
        elif isinstance(error, httptools.HttpParserInvalidMethodError):
            self._refuse(400, "Malformed HTTP request: unknown method")
        else:
            self._refuse(400, f"Malformed HTTP request: {error}")

    def _refuse_large_head(self) -> None:
        self._refuse(431, f"Request headers exceed {MAX_HEAD_BYTES} bytes")

    def _stalled(self) -> None:
        self._refuse(408, f"Request did not go on for {STALL_SECONDS:.0f} seconds")

    def _cancel_stall(self) -> None:
        if self._stall is not None:
            self._stall.cancel()
            self._stall = None

    def _refuse(self, status: int, reason: str) -> None:
        """Answer on behalf of the application, unless it has begun to answer, and close."""
        cycle = self._current_cycle()
        if cycle is not None and cycle.response_started and not cycle.response_complete:
            self.transport.close()
            return
        if cycle is not None:
            cycle.disconnected = True
            cycle.message_event.set()
        body = encode_json({"error": reason})
        head = [
            (b"Content-Type", b"application/json"),
            (b"Content-Length", b"%d" % len(body)),
            (b"Connection", b"close"),
            *CORS_HEADERS,
        ]
        lines = b"".join(b"%b: %b\r\n" % header for header in head)
        self.transport.write(STATUS_LINE[status] + lines + b"\r\n" + body)
        self.transport.close()

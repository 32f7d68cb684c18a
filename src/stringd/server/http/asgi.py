"""Serves one ASGI application through our own connections: requests arrive whole, answers may
stream, and the application hears when its client leaves.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final

from stringd.server.http.messages import CORS_HEADERS, ClientGone, HttpRequest, HttpResponse
from stringd.server.pages import speaker_of

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
AsgiApp = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]

_OURS: Final = (b"connection", b"content-length", b"transfer-encoding", b"keep-alive")
"""Header lines the connection writes itself."""

logger = logging.getLogger("stringd.server")


async def serve(app: AsgiApp, request: HttpRequest) -> HttpResponse:
    """Let the application answer a request. Raises `ClientGone` when nobody is left to answer."""
    exchange = _Exchange(request)
    try:
        await app(_scope(request), exchange.receive, exchange.send)
    except Exception:
        if not exchange.streaming:
            raise
        # The missing end of the stream is all that can still be said.
        logger.exception("%s %s failed while it streamed", request.method, request.path)
        raise ClientGone from None
    return exchange.response()


class _Exchange:
    """One request and what has been answered so far."""

    def __init__(self, request: HttpRequest) -> None:
        self._request = request
        self._asked = False
        self._status = 0
        self._head = b""
        self._last = b""
        self.streaming = False

    async def receive(self) -> Message:
        if not self._asked:
            self._asked = True
            return {"type": "http.request", "body": self._request.body, "more_body": False}
        # Waiting must not cancel the future: others may ask for it too.
        await asyncio.wait((self._request.peer.left(),))
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._status = message["status"]
            self._head = _head(message.get("headers", ()))
        elif message["type"] == "http.response.body":
            await self._body(message.get("body", b""), more=message.get("more_body", False))

    async def _body(self, data: bytes, *, more: bool) -> None:
        if not more:
            self._last = data
            return
        if not self.streaming:
            self.streaming = True
            self._request.peer.stream(self._head, self._status)
        await self._request.peer.write(data)

    def response(self) -> HttpResponse:
        if not self._status:
            if self._request.peer.left().done():
                raise ClientGone
            raise RuntimeError("the application did not answer")
        return HttpResponse(self._status, self._head, self._last)


def _scope(request: HttpRequest) -> dict[str, Any]:
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": request.method,
        "scheme": "http",
        "path": request.path,
        "raw_path": request.path.encode(),
        "root_path": "",
        "query_string": request.query,
        "headers": list(request.headers.items()),
        "client": None,
        "server": None,
        "stringd.visitor": speaker_of(request.peer.visitor, request.headers),
    }


def _head(headers: Any) -> bytes:
    lines = [b"%b: %b\r\n" % (n, v) for n, v in headers if bytes(n).lower() not in _OURS]
    return b"".join(lines) + CORS_HEADERS

"""Requests and replies as the endpoints see them, on bare ASGI."""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final

import msgspec

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

MAX_BODY_BYTES: Final = 10 * 1024 * 1024

CORS_HEADERS: Final = (
    (b"Access-Control-Allow-Origin", b"*"),
    (b"Access-Control-Allow-Headers", b"Content-Type, X-User-Id"),
)

encode_json = msgspec.json.Encoder().encode


class HttpError(Exception):
    """An answer that is an error: the status and the reason (or a whole body)."""

    def __init__(self, status: int, error: str, message: str | None = None) -> None:
        super().__init__(error)
        self.status = status
        self.body = {"error": error} if message is None else {"error": error, "message": message}


class ClientGone(Exception):  # noqa: N818 - an event, not a fault
    """The client left before its request was complete; nobody reads an answer."""


class Request:
    """One HTTP request. Its body is read at most once, within the size cap."""

    __slots__ = ("_headers", "method", "path", "receive", "scope")

    def __init__(self, scope: Scope, receive: Receive) -> None:
        self.scope = scope
        self.receive = receive
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        self._headers: list[tuple[bytes, bytes]] = scope["headers"]

    def header(self, name: bytes) -> str | None:
        """The first header of this (lower-case) name, trimmed; None when absent."""
        for key, value in self._headers:
            if key == name:
                return _decoded(value).strip()
        return None

    async def body(self, *also_accepted: str) -> bytes:
        """The whole body, which must be JSON (or of another accepted type) if it is typed."""
        declared = self.header(b"content-length")
        if declared is not None and declared.isdigit() and int(declared) > MAX_BODY_BYTES:
            raise _too_large()
        message = await self.receive()
        data: bytes = message.get("body", b"")
        if message.get("more_body", False):
            data = await self._rest(data)
        elif message["type"] == "http.disconnect":
            raise ClientGone
        if len(data) > MAX_BODY_BYTES:
            raise _too_large()
        if data:
            self._check_type(also_accepted)
        return data

    async def disconnected(self) -> None:
        """Return when the client has left."""
        while (await self.receive())["type"] != "http.disconnect":
            pass

    async def _rest(self, first: bytes) -> bytes:
        chunks = bytearray(first)
        more = True
        while more:
            message = await self.receive()
            if message["type"] == "http.disconnect":
                raise ClientGone
            chunks += message.get("body", b"")
            if len(chunks) > MAX_BODY_BYTES:
                raise _too_large()
            more = message.get("more_body", False)
        return bytes(chunks)

    def _check_type(self, also_accepted: tuple[str, ...]) -> None:
        declared = self.header(b"content-type")
        if not declared or declared == "application/json":
            return
        kind = declared.partition(";")[0].strip().lower()
        if kind == "application/json" or kind.endswith("+json") or kind in also_accepted:
            return
        wanted = " or ".join(("application/json", *also_accepted))
        raise HttpError(415, f"Content-Type must be {wanted}, not {kind}")


async def send_json(send: Send, status: int, body: object) -> None:
    """Answer with one JSON value."""
    data = encode_json(body)
    headers = [
        (b"Content-Type", b"application/json"),
        (b"Content-Length", b"%d" % len(data)),
        *CORS_HEADERS,
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": data})


async def send_empty(send: Send, status: int) -> None:
    """Answer without a body."""
    await send({"type": "http.response.start", "status": status, "headers": list(CORS_HEADERS)})
    await send({"type": "http.response.body", "body": b""})


def _too_large() -> HttpError:
    return HttpError(413, f"Request body exceeds {MAX_BODY_BYTES} bytes")


def _decoded(value: bytes) -> str:
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return value.decode("latin-1")

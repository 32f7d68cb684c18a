"""Requests and responses as the endpoints see them: whole values, no I/O."""

from http import HTTPStatus
from typing import TYPE_CHECKING, Final, Protocol

import msgspec

if TYPE_CHECKING:
    import asyncio

    from stringd.system.lineage import Speaker

MAX_BODY_BYTES: Final = 10 * 1024 * 1024

RETRY_SECONDS: Final = 1
"""When a client that was refused for want of room may ask again."""

CORS_HEADERS: Final = (
    b"Access-Control-Allow-Origin: *\r\nAccess-Control-Allow-Headers: Content-Type, X-User-Id\r\n"
)

encode_json = msgspec.json.Encoder().encode

STATUS_LINES: Final = {
    int(status): f"HTTP/1.1 {int(status)} {status.phrase}\r\n".encode("ascii")
    for status in HTTPStatus
}


class HttpError(Exception):
    """An answer that is an error: the status and the reason, or a code and its message."""

    def __init__(self, status: int, error: str, message: str | None = None) -> None:
        super().__init__(error)
        self.status = status
        self.body = {"error": error} if message is None else {"error": error, "message": message}


class ClientGone(Exception):  # noqa: N818 - an event, not a fault
    """The client left while its request waited; nobody reads an answer."""


class HttpResponse(msgspec.Struct, eq=False, gc=False):
    """A whole answer. `head` holds complete header lines besides length and connection.

    Event streams say `keep-alive` as the protocol fixes it, also to a client that asked to close.
    """

    status: int
    head: bytes
    body: bytes
    says_keep_alive: bool = False


class HttpPeer(Protocol):
    """The connection behind a request, for what takes time."""

    @property
    def visitor(self) -> "Speaker | None":
        """Who is at its other end, where that was asked."""

    def left(self) -> "asyncio.Future[None]":
        """A future that resolves when the client has left."""

    def stream(self, head: bytes, status: int = 200) -> None:
        """Send the head of an answer whose body follows later."""

    def stream_soon(self, head: bytes) -> None:
        """`stream`, unless the whole answer is there in a moment: then it leaves in one piece."""

    async def write(self, data: bytes) -> None:
        """Send a piece of that body and wait until the peer has room for more.

        The response returned in the end holds the last piece.
        """


class HttpRequest(msgspec.Struct, eq=False):
    """One whole request, as its connection received it."""

    method: str
    path: str
    query: bytes
    headers: dict[bytes, bytes]
    body: bytes
    peer: HttpPeer
    keep_alive: bool = True
    judged: bool = False
    """Whether its sender was."""
    held: int = 0
    """Bytes of the body that count against what everybody may send at once."""

    def header(self, name: bytes) -> str | None:
        """The header of this (lower-case) name, trimmed; None when absent."""
        value = self.headers.get(name)
        if value is None:
            return None
        try:
            return value.decode("utf-8").strip()
        except UnicodeDecodeError:
            return value.decode("latin-1").strip()

    def typed_body(self, *also_accepted: str) -> bytes:
        """The body, which must be JSON (or of another accepted type) if it is typed."""
        if self.body and self.headers.get(b"content-type") != b"application/json":
            self.check_type(*also_accepted)
        return self.body

    def check_type(self, *also_accepted: str) -> None:
        """Raises `HttpError` when the body is declared to be of a type that is not accepted."""
        declared = self.headers.get(b"content-type", b"")
        kind = declared.decode("latin-1").partition(";")[0].strip().lower()
        if kind in ("", "application/json", *also_accepted) or kind.endswith("+json"):
            return
        wanted = " or ".join(("application/json", *also_accepted))
        raise HttpError(415, f"Content-Type must be {wanted}, not {kind}")


def json_response(status: int, body: object) -> HttpResponse:
    """An answer of one JSON value."""
    return HttpResponse(
        status, b"Content-Type: application/json\r\n" + CORS_HEADERS, encode_json(body)
    )


def text_response(status: int, text: str) -> HttpResponse:
    """An answer of plain text."""
    head = b"Content-Type: text/plain; charset=utf-8\r\n" + CORS_HEADERS
    return HttpResponse(status, head, text.encode())


def empty_response(status: int) -> HttpResponse:
    """An answer without a body."""
    return HttpResponse(status, CORS_HEADERS, b"")


def error_response(error: HttpError) -> HttpResponse:
    """The JSON answer an error stands for."""
    response = json_response(error.status, error.body)
    if error.status == 503:
        response.head += b"Retry-After: %d\r\n" % RETRY_SECONDS
    return response


def too_busy() -> HttpError:
    """What is said when everything the daemon can give is in use."""
    return HttpError(503, "The daemon is busy with too many requests at once: try again later")

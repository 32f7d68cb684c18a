"""The receiving half of an HTTP/1.1 connection, on httptools: bytes in, whole requests out.

The caller is judged when the headers have arrived; only then is a body taken in.
"""

import asyncio
from abc import abstractmethod
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Protocol, cast
from urllib.parse import unquote

import httptools

from stringd.server.http.messages import MAX_BODY_BYTES, HttpError, HttpPeer, HttpRequest

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from stringd.server.http.budget import Place
    from stringd.server.http.messages import HttpResponse

MAX_HEAD_BYTES: Final = 64 * 1024
"""Request line and headers together; four times what Node allows."""

SMALL_BODY_BYTES: Final = 64 * 1024
"""Bodies up to this size are taken in however much everybody else sends."""

SLICE_BYTES: Final = 8 * 1024
"""What is parsed at a time, so that one packet of tiny requests does not become thousands."""

_WITH_BODY: Final = ("POST", "PUT", "PATCH")
"""What is sent with other methods is nobody's to read, and not kept."""


SHORT_URL_BYTES: Final = 64
"""Up to this length it is remembered what a URL says: clients use the same few."""


def _target(url: bytes) -> tuple[bytes | None, str, bytes]:
    """The host a whole URL names, the path, and the query."""
    parsed = httptools.parse_url(url)
    host = url.partition(b"//")[2].partition(b"/")[0] if parsed.host else None
    path = (parsed.path or b"/").decode("ascii")
    return host, unquote(path) if "%" in path else path, parsed.query or b""


_short_target = lru_cache(maxsize=256)(_target)


class Application(Protocol):
    """What a connection asks to answer a request."""

    def handle(self, request: HttpRequest) -> "HttpResponse | Awaitable[HttpResponse]":
        """Answer now, or later. Raises only `ClientGone`, and only later."""

    def judge(self, request: HttpRequest) -> HttpError | None:
        """Why a request is refused before its body is read; None when the body may come."""

    def judge_upgrade(
        self, method: bytes, path: bytes, headers: dict[bytes, bytes]
    ) -> HttpError | None:
        """Why a WebSocket upgrade is refused; None when it may pass."""


_SPENT: Final = httptools.HttpRequestParser(object())
"""The parser of connections that have ended."""


class _HeadTooLargeError(Exception):
    pass


class RequestReader(asyncio.Protocol):
    """Parses what arrives. What to do with a request, or with none, its heir decides."""

    __slots__ = (
        "_app",
        "_began",
        "_body",
        "_body_bytes",
        "_body_left",
        "_deaf",
        "_discarding",
        "_head_bytes",
        "_headers",
        "_held",
        "_in_head",
        "_incoming",
        "_keeps_body",
        "_last_activity",
        "_loop",
        "_parser",
        "_place",
        "_receiving",
        "_turn",
        "_unparsed",
        "_url",
    )

    def __init__(self, app: Application, loop: asyncio.AbstractEventLoop, place: "Place") -> None:
        self._app = app
        self._place = place
        self._loop = loop
        self._parser = httptools.HttpRequestParser(self)
        self._last_activity = loop.time()
        self._unparsed = b""
        self._deaf = False

        # The request being received.
        self._receiving = False
        self._began = 0.0
        self._in_head = True
        self._head_bytes = 0
        self._url = b""
        self._headers: dict[bytes, bytes] = {}
        self._incoming: HttpRequest | None = None
        self._body: list[bytes] = []
        self._body_bytes = 0
        self._body_left = 0
        self._held = 0
        self._turn = 0
        self._keeps_body = True
        self._discarding = False

    @abstractmethod
    def _accept(self, request: HttpRequest) -> None:
        """Answer a whole request, in its turn."""

    @abstractmethod
    def _refuse(self, status: int, reason: str) -> None:
        """Answer what is not a request, or not a welcome one, and end."""

    @abstractmethod
    def _refuse_body(self, error: HttpError, *, keep_alive: bool = True) -> None:
        """Answer at once; the rest of the body is read into nothing."""

    @abstractmethod
    def _change_protocol(self, rest: bytes) -> None:
        """Act on a request to upgrade, which these bytes followed."""

    @abstractmethod
    def _encourage(self, expectation: bytes) -> None:
        """Tell a client that asked first to send its body."""

    def data_received(self, data: bytes) -> None:
        """Parse what came, or as much of it as may be answered before others get their turn."""
        if self._deaf:
            self._ignore(data)
            return
        self._last_activity = self._loop.time()
        self._turn = 0
        size = len(data)
        if (size > SLICE_BYTES and self._body_left < size) or self._unparsed:
            self._unparsed += data
            self._go_on()
        else:
            self._feed(data)

    def _parse_slice(self) -> None:
        data = self._unparsed
        size = max(SLICE_BYTES, self._body_left)
        self._unparsed = data[size:]
        self._feed(data[:size])

    @abstractmethod
    def _let_others_read(self) -> None:
        """Read the next piece of a large body when others have had their turn."""

    @abstractmethod
    def _go_on(self) -> None:
        """Answer what waits and parse on, as far as the peer reads and others get their turn."""

    @abstractmethod
    def _ignore(self, data: bytes) -> None:
        """Take note of what somebody sends who is not listened to."""

    def _feed(self, data: bytes) -> None:
        if self._in_head:
            self._head_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as pause:
            rest, self._unparsed = self._unparsed, b""
            self._change_protocol(data[pause.args[0] :] + rest)
        except httptools.HttpParserError as error:
            self._refuse_unparsable(error)
        else:
            if self._in_head and self._head_bytes > MAX_HEAD_BYTES:
                self._refuse_large_head()

    # What the parser calls.

    def on_message_begin(self) -> None:
        self._receiving = True
        self._began = self._last_activity
        self._url = b""
        self._body_bytes = 0
        self._discarding = False
        if self._headers:
            self._headers = {}

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        key = name.lower()
        headers = self._headers
        # Joined, a repeated Host or Origin is not a name of this machine any more.
        headers[key] = b"%b, %b" % (headers[key], value) if key in headers else value

    def on_headers_complete(self) -> None:
        if self._head_bytes > MAX_HEAD_BYTES and self._size_of_head() > MAX_HEAD_BYTES:
            raise _HeadTooLargeError
        self._in_head = False
        self._head_bytes = 0
        if self._parser.should_upgrade():
            return
        url = self._url
        host, path, query = _short_target(url) if len(url) <= SHORT_URL_BYTES else _target(url)
        if host is not None:
            # A whole URL says whom the request is for; the Host header then counts no more.
            self._headers[b"host"] = host
        method = self._parser.get_method().decode("ascii")
        self._incoming = request = HttpRequest(
            method, path, query, self._headers, b"", cast("HttpPeer", self)
        )
        declared = self._headers.get(b"content-length")
        if declared is not None:
            self._body_left = int(declared)
        if self._body_left or b"transfer-encoding" in self._headers:
            error = self._app.judge(request)
            self._keeps_body = method in _WITH_BODY
            if error is not None or self._body_left > MAX_BODY_BYTES:
                self._refuse_before_body(error or _body_too_large())
            elif b"expect" in self._headers:
                self._encourage(self._headers[b"expect"])

    def _refuse_before_body(self, error: HttpError) -> None:
        if error.status == 403:
            self._discarding = True
            self._refuse(403, str(error))
        else:
            # Who asked before sending will not send now: the next bytes would be another request.
            self._refuse_body(error, keep_alive=b"expect" not in self._headers)

    def on_body(self, body: bytes) -> None:
        size = len(body)
        # A chunked body does not say how much is left.
        self._body_left -= size
        self._body_bytes += size
        if self._discarding or not self._keeps_body:
            return
        if self._body_bytes > SMALL_BODY_BYTES:
            self._take_in_large(body)
        else:
            self._body.append(body)

    def _take_in_large(self, body: bytes) -> None:
        if self._body_bytes > MAX_BODY_BYTES:
            self._refuse_body(_body_too_large())
        elif self._place.hold(self._body_bytes - self._held):
            self._held = self._body_bytes
            self._body.append(body)
            if self._body_left > 0:
                self._let_others_read()
        else:
            self._refuse_body(HttpError(503, "Too many large bodies at once: try again later"))

    def on_message_complete(self) -> None:
        self._receiving = False
        self._in_head = True
        self._body_left = 0
        request = self._incoming
        if request is None or self._discarding or self._deaf:
            self._drop_body()
            self._incoming = None
            return
        body = self._body
        request.body = body[0] if len(body) == 1 else b"".join(body)
        if self._held:
            request.held, self._held = self._held, 0
        request.keep_alive = self._parser.should_keep_alive()
        # An idle connection keeps nothing of what it was sent.
        self._body = []
        self._headers = {}
        self._incoming = None
        self._accept(request)

    def _drop_body(self) -> None:
        self._body = []
        if self._held:
            self._place.release(self._held)
            self._held = 0

    def _forget(self) -> None:
        """Let go of everything; the parser's calls back would keep it alive."""
        self._drop_body()
        self._unparsed = b""
        self._incoming = None
        self._parser = _SPENT

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


def _body_too_large() -> HttpError:
    return HttpError(413, f"Request body exceeds {MAX_BODY_BYTES} bytes")

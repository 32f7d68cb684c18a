"""The smallest HTTP client that can talk to the daemon: one keep-alive connection on loopback.

`string` must start faster than `http.client` can be imported; even `socket` would cost it a
third of its time, so this uses the C core of that module.
"""

try:
    import _socket as socket
except ImportError:
    import socket  # type: ignore[no-redef]

from stringd.system.peers import stranger_serving

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from stringd.system.peers import Address

LOOPBACK = "127.0.0.1"


class StringClientError(Exception):
    """Base of everything the String clients raise."""


class TransportError(StringClientError):
    """The daemon could not be reached, did not answer in time, or not in HTTP."""


def no_answer(port: int, seconds: float | None) -> TransportError:
    """For a daemon that took longer than its client waits."""
    limit = f" within {seconds:g} s" if seconds is not None else ""
    return TransportError(
        f"timed out: stringd on port {port} did not answer{limit}; "
        "what was asked for may have been done"
    )


class StrangerError(TransportError):
    """The port belongs to another account of this machine; nothing was sent."""

    def __init__(self, port: int, account: int) -> None:
        super().__init__(
            f"port {port} belongs to another account of this machine (uid {account}); nothing was "
            "sent. Choose a free port with STRINGD_PORT, or have that program stopped."
        )


def refuse_stranger(server: "Address", own: "Address") -> None:
    """Call before the first byte: raises `StrangerError` unless our account or root serves us."""
    account = stranger_serving(server, own)
    if account is not None:
        raise StrangerError(server[1], account)


class BrokenOffError(TransportError):
    """The answer began and did not end: what was asked for may have been done."""


def encode_head(
    port: int, method: str, path: str, body: bytes | None, headers: dict[str, str]
) -> bytes:
    """The request line and headers of a request whose body is JSON."""
    lines = [f"{method} {path} HTTP/1.1", f"Host: {LOOPBACK}:{port}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    if body is not None:
        lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    return "\r\n".join([*lines, "", ""]).encode()


class HttpReply:
    """A whole response."""

    __slots__ = ("body", "closes", "status")

    def __init__(self, status: int, body: bytes, *, closes: bool) -> None:
        self.status = status
        self.body = body
        self.closes = closes


class DaemonConnection:
    """A connection that is opened on first use and again after the peer closed it."""

    def __init__(self, port: int, timeout: float | None = None) -> None:
        self.port = port
        self.timeout = timeout
        self._socket: socket.socket | None = None
        self._buffer = b""

    def request(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: dict[str, str] | None = None,
    ) -> HttpReply:
        """Send one request and read its whole answer. Raises `TransportError`. Never retries."""
        try:
            head = encode_head(self.port, method, path, body, headers or {})
            return self._exchange(head + (body or b""))
        except TimeoutError as error:
            self.close()
            raise no_answer(self.port, self.timeout) from error
        except OSError as error:
            self.close()
            reason = error.strerror or str(error) or type(error).__name__
            raise TransportError(f"cannot reach stringd on port {self.port}: {reason}") from error
        except ValueError as error:
            self.close()
            raise TransportError(f"port {self.port} does not speak HTTP") from error
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> "DaemonConnection":  # noqa: PYI034 - typing would cost too much to import
        return self

    def __exit__(self, *_reason: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection; the next request opens a new one."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        self._buffer = b""

    def stream(
        self, method: str, path: str, body: bytes | None, headers: dict[str, str]
    ) -> "tuple[int, dict[str, str], Iterator[bytes]]":
        """Like `request`, but the body comes in pieces, as they arrive.

        The pieces raise `TransportError` when they break off; `OSError` means the same.
        """
        self._send(encode_head(self.port, method, path, body, headers) + (body or b""))
        status, answered = self._read_head()
        return status, answered, self._pieces(answered)

    def abort(self) -> None:
        """End a request another thread waits for; it may be over by now, and closed."""
        connection = self._socket
        if connection is not None:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def _exchange(self, message: bytes) -> HttpReply:
        self._send(message)
        reply = self._read_reply()
        if reply.closes:
            self.close()
        return reply

    def _send(self, message: bytes) -> None:
        if self._socket is not None and self._peer_left(self._socket):
            self.close()
        if self._socket is None:
            self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            self._socket.settimeout(self.timeout)
            self._socket.connect((LOOPBACK, self.port))
            refuse_stranger((LOOPBACK, self.port), self._socket.getsockname())
        self._socket.sendall(message)

    def _peer_left(self, connected: socket.socket) -> bool:
        """Whether an idle connection was closed meanwhile; noticed before anything is sent."""
        connected.setblocking(False)
        try:
            return connected.recv(1, socket.MSG_PEEK) == b""
        except BlockingIOError:
            return False
        finally:
            connected.settimeout(self.timeout)

    def _read_head(self) -> "tuple[int, dict[str, str]]":
        head = self._read_until(b"\r\n\r\n").decode("latin-1").split("\r\n")
        version, _, rest = head[0].partition(" ")
        if not version.startswith("HTTP/1.") or not rest[:3].isdigit():
            raise TransportError(f"port {self.port} does not speak HTTP")
        headers = {}
        for line in head[1:]:
            name, _, value = line.partition(":")
            headers[name.lower()] = value.strip()
        return int(rest[:3]), headers

    def _pieces(self, headers: dict[str, str]) -> "Iterator[bytes]":
        if "chunked" not in headers.get("transfer-encoding", ""):
            size = headers.get("content-length")
            yield self._read_to_end() if size is None else self._read_announced(int(size))
            return
        while size_of_piece := int(self._read_until(b"\r\n").partition(b";")[0], 16):
            yield self._read_exactly(size_of_piece)
            self._read_until(b"\r\n")
        self._read_until(b"\r\n")

    def _read_reply(self) -> HttpReply:
        status, headers = self._read_head()
        if "chunked" in headers.get("transfer-encoding", ""):
            body = self._read_chunks()
        elif status in (204, 304):
            body = b""
        elif "content-length" in headers:
            body = self._read_announced(int(headers["content-length"]))
        else:
            body = self._read_to_end()
            return HttpReply(status, body, closes=True)
        return HttpReply(status, body, closes="close" in headers.get("connection", "").lower())

    def _read_chunks(self) -> bytes:
        """The body so far, also when the peer leaves half-way: the events say what is missing."""
        chunks = []
        try:
            while size := int(self._read_until(b"\r\n").partition(b";")[0], 16):
                chunks.append(self._read_exactly(size))
                self._read_until(b"\r\n")
            self._read_until(b"\r\n")
        except _PeerClosedError:
            self.close()
        return b"".join(chunks)

    def _read_until(self, mark: bytes) -> bytes:
        while (end := self._buffer.find(mark)) < 0:
            self._fill()
        found, self._buffer = self._buffer[:end], self._buffer[end + len(mark) :]
        return found

    def _read_exactly(self, size: int) -> bytes:
        parts = [self._buffer]
        held = len(self._buffer)
        while held < size:
            self._buffer = b""
            self._fill()
            parts.append(self._buffer)
            held += len(self._buffer)
        joined = b"".join(parts)
        self._buffer = joined[size:]
        return joined[:size]

    def _read_announced(self, size: int) -> bytes:
        try:
            return self._read_exactly(size)
        except _PeerClosedError:
            raise BrokenOffError(f"the answer of port {self.port} broke off") from None

    def _read_to_end(self) -> bytes:
        try:
            while True:
                self._fill()
        except _PeerClosedError:
            return self._buffer

    def _fill(self) -> None:
        assert self._socket is not None
        try:
            data = self._socket.recv(65536)
        except ConnectionResetError:
            data = b""
        if not data:
            raise _PeerClosedError(self.port)
        self._buffer += data


class _PeerClosedError(TransportError):
    def __init__(self, port: int) -> None:
        super().__init__(f"stringd on port {port} closed the connection")

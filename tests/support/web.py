"""A real HTTP server for tests: answers what it is told, remembers what it was asked."""

import socket
import ssl
import threading
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, NamedTuple, Self


class Asked(NamedTuple):
    """One request as it arrived. Header names are lower case."""

    method: str
    target: str
    headers: dict[str, str]
    body: str


class Reply(NamedTuple):
    body: str | bytes = ""
    kind: str = "application/json"
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()


Answer = Callable[[Asked], Reply]


class _Server(ThreadingHTTPServer):
    """Ends the connections that its clients keep open, and the threads that serve them."""

    daemon_threads = False

    def __init__(self, handler: type[BaseHTTPRequestHandler]) -> None:
        self._connections: set[socket.socket] = set()
        super().__init__(("127.0.0.1", 0), handler)

    def get_request(self) -> tuple[socket.socket, Any]:
        connection, address = super().get_request()
        self._connections.add(connection)
        return connection, address

    def shutdown_request(self, request: Any) -> None:
        self._connections.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that leaves early is its own business."""

    def server_close(self) -> None:
        for connection in tuple(self._connections):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        super().server_close()


class WebServer:
    """Serves on a free loopback port between entry and exit."""

    def __init__(
        self, answer: Answer | Reply | None = None, tls: ssl.SSLContext | None = None
    ) -> None:
        self.asked: list[Asked] = []
        self.answer: Answer | Reply = answer or Reply("{}")
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _serve(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                headers = {name.lower(): value for name, value in self.headers.items()}
                asked = Asked(self.command, self.path, headers, self.rfile.read(length).decode())
                outer.asked.append(asked)
                reply = outer.answer(asked) if callable(outer.answer) else outer.answer
                body = reply.body.encode() if isinstance(reply.body, str) else reply.body
                self.send_response(reply.status)
                for name, value in reply.headers:
                    self.send_header(name, value)
                self.send_header("Content-Type", reply.kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _serve  # noqa: N815

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                """Tests read what was asked, not a log."""

        self._server = _Server(Handler)
        if tls is not None:
            self._server.socket = tls.wrap_socket(
                self._server.socket, server_side=True, do_handshake_on_connect=False
            )
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        )

    @property
    def port(self) -> int:
        return self._server.server_port

    @property
    def host(self) -> str:
        """Host and port, as an app declares them."""
        return f"127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def last(self) -> Asked:
        return self.asked[-1]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

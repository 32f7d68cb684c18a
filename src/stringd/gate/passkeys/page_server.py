"""The gate's own page for browsers of this machine: loopback, this account, one origin.

The gate serves it itself, so what a person reads before they approve comes from where the question
comes from. The port is another one at each start, and both loopback addresses are taken: nobody
else can have served pages under this origin.
"""

import json
import os
import socket
import threading
from collections.abc import Callable, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final, Protocol
from urllib.parse import parse_qs, urlsplit

from stringd.gate.errors import TroubleError, os_text
from stringd.gate.passkeys.passkey import PasskeyError
from stringd.gate.passkeys.verify import RELYING_PARTY
from stringd.gate.watch import Signal, wait_for
from stringd.system.peers import SocketTable, kernel_can_say, open_socket_table

MAX_VISITORS: Final = 32
MAX_BODY: Final = 64 * 1024
LONGEST_WAIT: Final = 20.0
_READ_SECONDS: Final = 10.0
_TRIES: Final = 20
_FILES: Final = Path(__file__).parent / "page"
_ASSETS: Final = {
    "/page.js": ("page.js", "text/javascript"),
    "/page.css": ("page.css", "text/css"),
}
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'"
)
_HEADERS: Final = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": _POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
_NOT_BY_ADDRESS: Final = "browsers use passkeys by name only: open {origin}/ instead"
_ANOTHER_ACCOUNT: Final = "this gate belongs to another account of this machine"

Json = Mapping[str, Any]


class Ceremonies(Protocol):
    """What browsers may do. Everything raises `PasskeyError` with the reason."""

    def question(self, seen: str, seconds: float) -> Json: ...
    def approve(self, body: Json) -> Json: ...
    def registration(self, token: str) -> Json: ...
    def register(self, token: str, body: Json) -> Json: ...


class PageServer:
    """Serves the page until `close`. Raises `TroubleError` where it cannot."""

    def __init__(self, ceremonies: Ceremonies) -> None:
        table = open_socket_table() if kernel_can_say() else None
        if table is None:
            raise TroubleError("this kernel cannot say who opens a page, so passkeys are off")
        self._table: SocketTable = table
        self._asking = threading.Lock()
        self._visitors = threading.BoundedSemaphore(MAX_VISITORS)
        self._servers = _bound(self._handler(ceremonies))
        self.port: int = self._servers[0].server_address[1]
        self._closing = Signal()
        for server in self._servers:
            server.visitors = self._visitors
        self._thread = threading.Thread(target=self._serve, daemon=True, name="passkeys")
        self._thread.start()

    @property
    def origin(self) -> str:
        return f"http://{RELYING_PARTY}:{self.port}"

    def close(self) -> None:
        self._closing.set()
        self._thread.join()
        for server in self._servers:
            server.server_close()
        self._closing.close()
        self._table.close()

    def _serve(self) -> None:
        """Without a visitor nothing wakes up."""
        servers = {server.fileno(): server for server in self._servers}
        while not self._closing.is_set:
            for ready in wait_for([*servers, self._closing]) & servers.keys():
                servers[ready].handle_request()

    def belongs_here(self, theirs: tuple[str, int], ours: tuple[str, int]) -> bool:
        """Whether a program of our own account opened a connection, by the kernel's word."""
        with self._asking:
            found = self._table.connected(theirs, ours)
        return found is not None and found.uid == os.geteuid()

    def _handler(self, ceremonies: Ceremonies) -> type["_Handler"]:
        page = self

        class Handler(_Handler):
            server_page = page
            server_ceremonies = ceremonies

        return Handler


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64
    allow_reuse_address = False
    # Asked only when somebody is there.
    timeout = 0
    visitors: threading.BoundedSemaphore

    def process_request(self, request: Any, client_address: Any) -> None:
        if not self.visitors.acquire(blocking=False):
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.visitors.release()

    def server_bind(self) -> None:
        # Its own asks a name server for the name of this machine.
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A visitor that went away is not worth a word."""


class _ServerOverIPv6(_Server):
    address_family = socket.AF_INET6


def _bound(handler: type[BaseHTTPRequestHandler]) -> tuple[_Server, ...]:
    """A server on each loopback address, on one port that was free on both."""
    over_ipv6 = _has_ipv6()
    for _ in range(_TRIES):
        try:
            first = _Server(("127.0.0.1", 0), handler)
        except OSError as error:
            raise TroubleError(f"no port for the passkeys' page: {os_text(error)}") from None
        if not over_ipv6:
            return (first,)
        try:
            return first, _ServerOverIPv6(("::1", first.server_address[1]), handler)
        except OSError:
            first.server_close()
    raise TroubleError("no port is free on both loopback addresses, so passkeys are off")


def _has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True


class _PageError(Exception):
    def __init__(self, status: HTTPStatus, why: str) -> None:
        super().__init__(why)
        self.status = status


class _Handler(BaseHTTPRequestHandler):
    """One request of a browser, one answer, and the end of its connection."""

    server_page: PageServer
    server_ceremonies: Ceremonies
    timeout = _READ_SECONDS
    server_version = "stringd"
    sys_version = ""

    def setup(self) -> None:
        super().setup()
        self._is_ours = self.server_page.belongs_here(
            self.client_address[:2], self.connection.getsockname()[:2]
        )

    def do_GET(self) -> None:
        self._answer(self._get)

    def do_POST(self) -> None:
        self._answer(self._post)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """The audit log has what counts."""

    def _answer(self, respond: Callable[[str, Mapping[str, list[str]]], None]) -> None:
        try:
            if not self._is_ours:
                raise _PageError(HTTPStatus.FORBIDDEN, _ANOTHER_ACCOUNT)
            address = urlsplit(self.path)
            if self.headers.get("Host") != f"{RELYING_PARTY}:{self.server_page.port}":
                self._send_to_name(address.path)
                return
            respond(address.path, parse_qs(address.query))
        except _PageError as error:
            self._send_json(error.status, {"error": str(error)})
        except PasskeyError as error:
            self._send_json(HTTPStatus.CONFLICT, {"error": str(error)})
        except ValueError:
            self._send_json(HTTPStatus.BAD_REQUEST, {"error": "that cannot be read"})

    def _send_to_name(self, path: str) -> None:
        """A page at an address cannot use a passkey: lead there where it can."""
        origin = self.server_page.origin
        if self.command != "GET" or not path.startswith("/") or path.startswith("//"):
            raise _PageError(HTTPStatus.FORBIDDEN, _NOT_BY_ADDRESS.format(origin=origin))
        self.send_response(HTTPStatus.TEMPORARY_REDIRECT)
        self.send_header("Location", origin + path)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _get(self, path: str, query: Mapping[str, list[str]]) -> None:
        if path == "/" or path.startswith("/register/"):
            self._send_file("index.html", "text/html")
            return
        if path in _ASSETS:
            self._send_file(*_ASSETS[path])
            return
        self._refuse_other_sites()
        if path == "/question":
            seen = query.get("seen", [""])[0]
            self._send_json(HTTPStatus.OK, self.server_ceremonies.question(seen, LONGEST_WAIT))
        elif path == "/registration":
            token = query.get("token", [""])[0]
            self._send_json(HTTPStatus.OK, self.server_ceremonies.registration(token))
        else:
            raise _PageError(HTTPStatus.NOT_FOUND, "there is no such page")

    def _post(self, path: str, query: Mapping[str, list[str]]) -> None:
        self._refuse_other_sites()
        if self.headers.get("Origin") != self.server_page.origin:
            raise _PageError(HTTPStatus.FORBIDDEN, "another page sent this")
        body = self._body()
        if path == "/approve":
            self._send_json(HTTPStatus.OK, self.server_ceremonies.approve(body))
        elif path == "/register":
            token = query.get("token", [""])[0]
            self._send_json(HTTPStatus.OK, self.server_ceremonies.register(token, body))
        else:
            raise _PageError(HTTPStatus.NOT_FOUND, "there is no such page")

    def _refuse_other_sites(self) -> None:
        if self.headers.get("Sec-Fetch-Site", "same-origin") not in ("same-origin", "none"):
            raise _PageError(HTTPStatus.FORBIDDEN, "another page asks for this")

    def _body(self) -> Json:
        if self.headers.get_content_type() != "application/json":
            raise _PageError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "this takes JSON")
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdigit() and int(length[:9]) <= MAX_BODY):
            raise _PageError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "that is too long")
        try:
            body = json.loads(self.rfile.read(int(length)))
        except RecursionError:
            body = None
        if not isinstance(body, dict):
            raise _PageError(HTTPStatus.BAD_REQUEST, "this takes an object")
        return body

    def _send_file(self, name: str, kind: str) -> None:
        self._send(HTTPStatus.OK, (_FILES / name).read_bytes(), f"{kind}; charset=utf-8")

    def _send_json(self, status: HTTPStatus, value: Json) -> None:
        self._send(status, json.dumps(value).encode("ascii"), "application/json")

    def _send(self, status: HTTPStatus, data: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

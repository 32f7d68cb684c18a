"""Carries MCP between standard input and output and the daemon's `/mcp`.

Every line in is a JSON-RPC message; a request becomes one POST, and each message of its answer
one line out. The daemon keeps no MCP sessions, so notifications stay here: only a cancelled
request matters, and that is a connection to end. Standard library only: agents wait for this.
The first questions are answered here while the daemon starts: some clients do not wait for it.
"""

import base64
import json
import os
import select
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, BinaryIO
from urllib.parse import quote, urlencode

from stringd import __version__
from stringd.client.daemon import last_words, register, start
from stringd.client.http import DaemonConnection, StrangerError, TransportError
from stringd.client.identity import ClientIdentity, make_home
from stringd.wire.sse import SseReader

_META_VERSION = "io.modelcontextprotocol/protocolVersion"
_NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
"""Methods whose subject newer protocol versions want in a header too, and where it is."""

_GREETINGS = ("initialize", "server/discover")
"""Methods whose answer may hold the instructions."""

_MAX_CLIENT = 200
"""Of a client's name and version, so much is passed on."""

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
INTERNAL_ERROR = -32603

LOOK_SECONDS = 0.5
"""How often a client that ended our input is looked for."""

Json = dict[str, Any]

Greet = Callable[[Json], Json | None]
"""The result of a request that needs no daemon; None for all others."""

LIST_SECONDS = 1.0
"""So long a list of resources may take; some clients offer no tools before they have it."""
_NO_RESOURCES: Json = {"resources": []}
_RESOURCES_CHANGED = '{"jsonrpc":"2.0","method":"notifications/resources/list_changed"}'

WARM_UP_SECONDS = 30.0
_WARM_UP = b'{"jsonrpc":"2.0","id":0,"method":"ping"}'
"""Makes the daemon load what it answers MCP with."""


class Bridge:
    """One client on standard input and output."""

    def __init__(
        self,
        who: ClientIdentity,
        out: BinaryIO,
        greet: Greet,
        *,
        cwd: str | None = None,
        environment: Mapping[str, str] | None = None,
        gate_socket: str | None = None,
        tools: str | None = None,
    ) -> None:
        self._who = who
        self._out = out
        self._greet = greet
        self._path = f"/mcp?tools={quote(tools, safe=',')}" if tools else "/mcp"
        self._headers = {
            "X-User-Id": who.user,
            "Accept": "application/json, text/event-stream",
            **({"X-Stringd-Cwd": quote(cwd)} if cwd else {}),
            **({"X-Stringd-Env": urlencode(environment)} if environment else {}),
            **({"X-Stringd-Gate-Socket": quote(gate_socket)} if gate_socket else {}),
            # The client starts us, so it is our parent.
            "X-Stringd-Client-Pid": str(os.getppid()),
        }
        self._cwd = cwd
        self._version: str | None = None
        self._writing = threading.Lock()
        self._starting = threading.Lock()
        self._ready = False
        self._warm = threading.Event()
        """Set once the daemon has answered over MCP, or will not."""
        self._another_version = False
        self._in_flight: dict[str, DaemonConnection] = {}
        self._threads: list[threading.Thread] = []

    def run(self, lines: Iterable[bytes]) -> None:
        """Carry messages until the input ends and every request is answered, or nobody listens."""
        for line in lines:
            if line.strip():
                self._take(line)
        while any(thread.is_alive() for thread in self._threads):
            if _nobody_reads(self._out):
                self._hang_up()
            self._threads[-1].join(LOOK_SECONDS)
            self._threads = [thread for thread in self._threads if thread.is_alive()]

    def _hang_up(self) -> None:
        """Leave the daemon as the client left us: what it waits for is not wanted any more."""
        for connection in list(self._in_flight.values()):
            connection.abort()

    def _take(self, line: bytes) -> None:
        try:
            message = json.loads(line)
        except ValueError:
            self._fail(None, PARSE_ERROR, "Parse error")
            return
        if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
            self._fail(None, INVALID_REQUEST, "Expected one JSON-RPC 2.0 message a line")
        elif message.get("method") == "notifications/cancelled":
            self._cancel(message)
        elif "method" in message and "id" in message:
            self._start(message, line)

    def _start(self, message: Json, line: bytes) -> None:
        # What follows the handshake must know which version was agreed on.
        if message["method"] == "initialize":
            self._note_client(message)
            self._in_thread(self._warm_up)
            if not self._answer_here(message):
                self._answer(message, line)
        elif message["method"] == "resources/list" and self._version is not None:
            self._in_thread(self._list_resources, message, line)
        # Tools of another version are listed by the daemon that has them.
        elif self._version is None or self._another_version or not self._answer_here(message):
            self._in_thread(self._answer, message, line)

    def _in_thread(self, work: Callable[..., None], *arguments: object) -> None:
        self._threads = [thread for thread in self._threads if thread.is_alive()]
        thread = threading.Thread(target=work, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _answer_here(self, message: Json) -> bool:
        """Answer what needs no daemon; False when this does."""
        result = self._greet(message)
        if result is None:
            return False
        answer = {"jsonrpc": "2.0", "id": message["id"], "result": result}
        self._pass_on(message, json.dumps(answer))
        return True

    def _list_resources(self, message: Json, line: bytes) -> None:
        """The daemon's list; none yet if it is still starting, and a word when it can be asked."""
        if self._warm.wait(LIST_SECONDS):
            self._answer(message, line)
            return
        answer = {"jsonrpc": "2.0", "id": message["id"], "result": _NO_RESOURCES}
        self._write(json.dumps(answer))
        self._warm.wait()
        self._write(_RESOURCES_CHANGED)

    def _warm_up(self) -> None:
        """Have the daemon ready by the first call of a tool."""
        try:
            self._ensure_daemon()
            with DaemonConnection(self._who.port, WARM_UP_SECONDS) as connection:
                connection.request("POST", self._path, _WARM_UP, self._headers)
        except (TransportError, OSError) as error:
            # The next call is answered with this too, but clients log what is said here.
            sys.stderr.write(f"stringd: {error}\n")
        finally:
            self._warm.set()

    def _note_client(self, message: Json) -> None:
        """Remember what the client calls itself: the daemon hears every message by itself."""
        params = message.get("params")
        info = params.get("clientInfo") if isinstance(params, dict) else None
        if isinstance(info, dict):
            name = " ".join(str(info[key]) for key in ("name", "version") if info.get(key))
            self._headers["X-Stringd-Client"] = quote(name[:_MAX_CLIENT], errors="replace")

    def _cancel(self, message: Json) -> None:
        params = message.get("params")
        wanted = params.get("requestId") if isinstance(params, dict) else None
        connection = self._in_flight.pop(_key(wanted), None)
        if connection is not None:
            connection.abort()

    def _answer(self, message: Json, line: bytes) -> None:
        connection = DaemonConnection(self._who.port)
        key = _key(message["id"])
        self._in_flight[key] = connection
        try:
            self._exchange(connection, message, line)
        except (TransportError, OSError) as error:
            # A cancelled request is no longer in flight, and gets no answer.
            if key in self._in_flight:
                self._fail(
                    message["id"],
                    INTERNAL_ERROR,
                    f"stringd did not answer: {error}. What was asked for may have been done.",
                )
        finally:
            self._in_flight.pop(key, None)
            connection.close()

    def _exchange(self, connection: DaemonConnection, message: Json, line: bytes) -> None:
        headers = self._headers | self._protocol_headers(message)
        self._ensure_daemon()
        try:
            status, answered, pieces = connection.stream("POST", self._path, line, headers)
        except ConnectionRefusedError:
            # Nothing was sent: the daemon has ended since, so start it and send now.
            connection.close()
            self._ready = False
            self._ensure_daemon()
            status, answered, pieces = connection.stream("POST", self._path, line, headers)
        self._warm.set()
        if answered.get("content-type", "").startswith("text/event-stream"):
            for data in sse_data(pieces):
                self._pass_on(message, data)
        else:
            self._whole(message, status, b"".join(pieces))

    def _whole(self, message: Json, status: int, body: bytes) -> None:
        try:
            answer = json.loads(body)
        except ValueError:
            answer = None
        if isinstance(answer, dict) and "jsonrpc" in answer:
            if answer.get("id") is None:
                answer["id"] = message["id"]
            self._pass_on(message, json.dumps(answer))
            return
        reason = (
            answer.get("error") if isinstance(answer, dict) else body.decode("utf-8", "replace")
        )
        self._fail(message["id"], INTERNAL_ERROR, f"stringd answered {status}: {reason}")

    def _pass_on(self, message: Json, data: str) -> None:
        if message["method"] in _GREETINGS:
            answer = json.loads(data)
            result = answer.get("result")
            if isinstance(result, dict):
                if message["method"] == "initialize":
                    version = result.get("protocolVersion")
                    self._version = version if isinstance(version, str) else None
                data = json.dumps({**answer, "result": self._placed(result)})
        self._write(data)

    def _placed(self, result: Json) -> Json:
        """The daemon's greeting, with where this client works: only we know that."""
        said = result.get("instructions")
        if self._cwd is None or not isinstance(said, str):
            return result
        return {**result, "instructions": f"{said} That directory is {self._cwd}."}

    def _protocol_headers(self, message: Json) -> dict[str, str]:
        params = message.get("params")
        params = params if isinstance(params, dict) else {}
        meta = params.get("_meta")
        version = meta.get(_META_VERSION) if isinstance(meta, dict) else None
        if not isinstance(version, str):
            known = self._version if message["method"] != "initialize" else None
            return {"Mcp-Protocol-Version": known} if known else {}
        method = str(message["method"])
        headers = {"Mcp-Protocol-Version": _value(version), "Mcp-Method": _value(method)}
        subject = params.get(_NAMED.get(method, ""))
        return headers | ({"Mcp-Name": _value(subject)} if isinstance(subject, str) else {})

    def _ensure_daemon(self) -> None:
        """Start the daemon if none answers, and give a user its chosen home."""
        with self._starting:
            if self._ready:
                return
            with DaemonConnection(self._who.port, timeout=5.0) as connection:
                try:
                    said = connection.request("GET", "/health").body
                    # What cannot be read is no daemon of ours; the next request says so.
                    with suppress(ValueError, AttributeError):
                        self._another_version = json.loads(said).get("version") != __version__
                except StrangerError:
                    raise
                except TransportError:
                    if not start(self._who.port):
                        port = self._who.port
                        raise TransportError(
                            f"failed to start stringd on port {port}{last_words()}"
                        ) from None
                if self._who.home_chosen:
                    make_home(self._who.home)
                    register(connection, self._who.user, self._who.home)
            self._ready = True

    def _fail(self, request_id: object, code: int, text: str) -> None:
        error = {"code": code, "message": text}
        self._write(json.dumps({"jsonrpc": "2.0", "id": request_id, "error": error}))

    def _write(self, data: str) -> None:
        line = data.replace("\r", " ").replace("\n", " ").encode("utf-8", "replace") + b"\n"
        # A client that stopped reading is about to end our input too.
        with self._writing, suppress(BrokenPipeError):
            self._out.write(line)
            self._out.flush()


def sse_data(pieces: Iterable[bytes]) -> Iterator[str]:
    """The data of each event, as soon as its last byte is there."""
    reader = SseReader()
    for piece in pieces:
        for _, data in reader.feed(piece):
            if data.strip("\n"):
                yield data


def _nobody_reads(out: BinaryIO) -> bool:
    """Whether the other end of a pipe is gone."""
    try:
        watched = select.poll()
        watched.register(out.fileno(), 0)
        return bool(watched.poll(0))
    except OSError:
        return False


def _key(request_id: object) -> str:
    """Ids are told apart by type too: 1 is not "1"."""
    return json.dumps(request_id)


def _value(text: str) -> str:
    """Text as a header value: what would not survive there is wrapped in base64."""
    if text == text.strip() and text.isascii() and text.isprintable():
        return text
    return f"=?base64?{base64.b64encode(text.encode('utf-8', 'replace')).decode('ascii')}?="

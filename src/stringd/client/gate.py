"""Asks a gate to run commands. `Gate` blocks, `AsyncGate` awaits; both take the same arguments.

Neither ever repeats a request by itself: what may have been executed is asked for once.
"""

import os
import shlex
import socket
import struct
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final, TypedDict, Unpack

from stringd import __version__
from stringd.system.memory import large_room
from stringd.system.peers import ROOT, unix_peer
from stringd.wire.gate import (
    LARGE_LINE,
    MAX_RESPONSE_BYTES,
    SOCKET_NAME,
    STOPS,
    Request,
    RequestAction,
    Response,
    ResponseError,
    Status,
    decode_response,
    encode_request,
    fresh_id,
    gate_directory,
    socket_path,
)
from stringd.wire.search import find

if TYPE_CHECKING:
    import asyncio

CONNECT_SECONDS: Final = 5.0
WRITE_SECONDS: Final = 5.0
DEFAULT_TIMEOUT: Final = 600.0
CONTROL_TIMEOUT: Final = 10.0
# One full stream of output in base64; as much as we accept.
_ROOMS: Final = (24 * 1024 * 1024, MAX_RESPONSE_BYTES)


class GateClientError(Exception):
    """The gate could not be asked, or did not answer; the text is for people."""


class GateNotRunningError(GateClientError):
    """Nobody listens at the socket."""

    def __init__(self, path: str) -> None:
        super().__init__(
            f"could not connect to {path}: stringd gate is not running. {_elsewhere(path)}"
            "Add --open to have a terminal opened for it. "
            f"Start it in a terminal of your own: {starting(path)}"
        )


class GateStrangerError(GateClientError):
    """Another account of this machine listens at the socket; nothing was sent."""

    def __init__(self, path: str, account: int) -> None:
        super().__init__(
            f"{path} belongs to another account of this machine (uid {account}); nothing was sent. "
            "Choose another socket with --socket or STRINGD_GATE_SOCKET, or have that program "
            "stopped."
        )


class NoAnswerError(GateClientError):
    """The gate did not answer in time. The command may or may not have run."""


def starting(path: str) -> str:
    """What a person types to have a gate there, whatever directory they are in."""
    # Without `pathlib` throughout: a client that finds no gate should cost next to nothing.
    whole = shlex.quote(path if path.startswith("/") else f"{os.getcwd()}/{path}")  # noqa: PTH109
    return "stringd gate" if _is_usual(path) else f"stringd gate --socket {whole}"


def _elsewhere(path: str) -> str:
    """How to reach a gate that runs, but was started where its socket came to lie elsewhere."""
    hint = "One that listens elsewhere is reached with --socket or STRINGD_GATE_SOCKET. "
    return "" if _is_usual(path) else hint


def _is_usual(path: str) -> bool:
    """Whether gate and callers meet there wherever they are started."""
    return path.endswith(f"/{SOCKET_NAME}")


def default_socket(env: Mapping[str, str] | None = None) -> str:
    """Where the gate listens by default on this machine."""
    env = os.environ if env is None else env
    where = gate_directory(env, os.path.expanduser("~"))  # noqa: PTH111
    return socket_path(env, os.getuid(), where, os.path.isdir)


def host_name() -> str:
    """This machine's name as the gate's terminal shows it."""
    try:
        with open("/etc/hostname", encoding="utf-8") as file:
            return file.read().strip() or "unknown"
    except (OSError, UnicodeDecodeError):
        return "unknown"


class RequestOptions(TypedDict, total=False):
    """What `run` takes besides the pipeline; `build_request` has the defaults."""

    reason: str
    session: str
    host: str
    env: Mapping[str, str] | None
    privileged: bool
    forward_agent: bool
    request_id: str | None
    action: RequestAction
    client: str
    directory: str
    client_pid: int
    tool: str
    text: str


def build_request(
    pipeline: Sequence[Sequence[str]],
    *,
    reason: str = "",
    session: str = "",
    host: str = "",
    env: Mapping[str, str] | None = None,
    privileged: bool = True,
    forward_agent: bool = False,
    request_id: str | None = None,
    action: RequestAction = RequestAction.EXEC,
    client: str = "",
    directory: str = "",
    client_pid: int = 0,
    tool: str = "",
    text: str = "",
) -> Request:
    """A request stamped with the present time and an id of its own.

    With `RequestAction.REMOTE` the command is for the machine that `host` names in the gate's list.
    With `RequestAction.DECIDE` it is about `tool` and `text`, what an agent is about to do itself.
    `client`, `directory` and `client_pid` say for whom a program asks that speaks for others.

    Raises `GateClientError` for text that JSON cannot carry, which is what Python makes of words
    that are not UTF-8.
    """
    sides = (reason, session, host, client, directory, tool, text)
    for name, given in _texts(pipeline, env or {}, *sides):
        if not _is_text(given):
            raise GateClientError(
                f"{name} is not valid UTF-8 ({given!a}), and the gate takes text only"
            )
    return Request(
        pipeline=tuple(tuple(stage) for stage in pipeline),
        id=fresh_id(os.urandom(16)) if request_id is None else request_id,
        host=host,
        session=session,
        time=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        env=dict(env or {}),
        reason=reason,
        privileged=privileged,
        forward_agent=forward_agent,
        version=__version__,
        action=action,
        client=client,
        directory=directory,
        client_pid=client_pid,
        tool=tool,
        text=text,
    )


_SIDES: Final = (
    *("the reason", "the session", "the host", "the client", "the directory"),
    *("the tool", "the text"),
)


def _texts(
    pipeline: Sequence[Sequence[str]], env: Mapping[str, str], *sides: str
) -> Iterator[tuple[str, str]]:
    for i, stage in enumerate(pipeline):
        for j, word in enumerate(stage):
            yield (f"argument {j} of the command" if len(pipeline) == 1 else f"[{i}][{j}]"), word
    for name, value in env.items():
        yield f"the variable {name!a}", name + value
    yield from zip(_SIDES, sides, strict=True)


def _is_text(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


class _Client:
    def __init__(self, path: str | None = None, *, timeout: float = DEFAULT_TIMEOUT) -> None:
        self.path = default_socket() if path is None else path
        self.timeout = timeout

    def _refuse_stranger(self, connection: socket.socket) -> None:
        """Call before the first byte: what is asked may hold secrets."""
        _, account = unix_peer(connection)
        if account not in (os.geteuid(), ROOT):
            raise GateStrangerError(self.path, account)


class Gate(_Client):
    """A blocking client. Each call is one connection."""

    def run(self, pipeline: Sequence[Sequence[str]], **options: Unpack[RequestOptions]) -> Response:
        """Ask for a pipeline and wait for the human and the command. Raises `GateClientError`."""
        return self.send(build_request(pipeline, **options))

    def ping(self) -> Response:
        """Whether somebody answers, and which version."""
        return self._control(RequestAction.PING)

    def stop(self) -> Response:
        """Ask the gate to end; it refuses while something is in progress."""
        return self._control(RequestAction.STOP)

    def send(self, request: Request, *, timeout: float | None = None) -> Response:
        """Send a request as it is. Raises `GateClientError`."""
        limit = self.timeout if timeout is None else timeout
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            self._connect(connection)
            # The gate may answer before it has read everything; the answer is what counts.
            with suppress(OSError):
                connection.settimeout(WRITE_SECONDS)
                connection.sendall(encode_request(request))
            connection.settimeout(None)
            _limit(connection, socket.SO_RCVTIMEO, limit)
            try:
                line, plain = _read_line(connection)
            except BlockingIOError:
                raise NoAnswerError(f"no response from daemon after {limit:g}s") from None
        return _response(line, plain)

    def _control(self, action: RequestAction) -> Response:
        request = build_request([], privileged=False, action=action)
        return self.send(request, timeout=CONTROL_TIMEOUT)

    def _connect(self, connection: socket.socket) -> None:
        _limit(connection, socket.SO_SNDTIMEO, CONNECT_SECONDS)
        try:
            connection.connect(self.path)
        except OSError:
            raise GateNotRunningError(self.path) from None
        self._refuse_stranger(connection)


class AsyncGate(_Client):
    """The same for an event loop. A cancelled call disconnects, and what waits is then not run."""

    async def run(
        self, pipeline: Sequence[Sequence[str]], **options: Unpack[RequestOptions]
    ) -> Response:
        """Ask for a pipeline and wait for the human and the command. Raises `GateClientError`."""
        return await self.send(build_request(pipeline, **options))

    async def ping(self) -> Response:
        """Whether somebody answers, and which version."""
        return await self._control(RequestAction.PING)

    async def stop(self) -> Response:
        """Ask the gate to end; it refuses while something is in progress."""
        return await self._control(RequestAction.STOP)

    async def send(self, request: Request, *, timeout: float | None = None) -> Response:  # noqa: ASYNC109
        """Send a request as it is. Raises `GateClientError`."""
        import asyncio  # whoever awaits this has it

        limit = self.timeout if timeout is None else timeout
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                reader, writer = await asyncio.open_unix_connection(
                    self.path, limit=MAX_RESPONSE_BYTES
                )
        except (OSError, TimeoutError):
            raise GateNotRunningError(self.path) from None
        try:
            self._refuse_stranger(writer.get_extra_info("socket"))
            with suppress(OSError):
                writer.write(encode_request(request))
            async with asyncio.timeout(limit):
                return _response(await _read_line_async(reader))
        except TimeoutError:
            raise NoAnswerError(f"no response from daemon after {limit:g}s") from None
        finally:
            writer.close()

    async def _control(self, action: RequestAction) -> Response:
        request = build_request([], privileged=False, action=action)
        return await self.send(request, timeout=CONTROL_TIMEOUT)


def succeeded(response: Response) -> bool:
    """Whether the pipeline ran and its last command ended with zero."""
    return (
        response.status is Status.OK
        and bool(response.stages)
        and (response.stages[-1].exit_code == 0)
    )


def _limit(connection: socket.socket, option: int, seconds: float) -> None:
    """Set the kernel's own time limit, which Python's would double with a call before each.

    With Python's, a full queue would also look like no gate at all.
    """
    whole, part = divmod(max(1, round(seconds * 1e6)), 1_000_000)
    connection.setsockopt(socket.SOL_SOCKET, option, struct.pack("ll", whole, part))


def _read_line(connection: socket.socket) -> tuple[memoryview, int]:
    """One line of an answer, or what came before the peer closed; and how far it is plain.

    While the gate encodes the next piece, there is time to look through the last one.
    """
    line = memoryview(bytearray(LARGE_LINE))
    size, plain = 0, LARGE_LINE
    while size < MAX_RESPONSE_BYTES:
        if size == len(line):
            # In one step to the next size, so that little is copied.
            more = large_room(next(room for room in _ROOMS if room > size))
            more[:size] = line
            line = more
        received = _receive(connection, line[size:])
        if size == plain and find(line[: size + received], STOPS, size) < 0:
            plain += received
        size += received
        if not received or (end := _line_end(line[:size])) >= 0:
            return line[: end if received else size], plain
    raise GateClientError("the response is larger than 64 MiB")


def _line_end(received: memoryview) -> int:
    """Where the newline is, or -1. In megabytes it is looked for at the very end alone."""
    if len(received) <= LARGE_LINE:
        return bytes(received).find(b"\n")
    return len(received) - 1 if received[-1] == ord("\n") else -1


def _receive(connection: socket.socket, room: memoryview) -> int:
    try:
        return connection.recv_into(room)
    except ConnectionError:
        return 0


async def _read_line_async(reader: "asyncio.StreamReader") -> bytes:
    import asyncio  # see above

    try:
        return await reader.readuntil(b"\n")
    except asyncio.IncompleteReadError as error:
        return error.partial
    except asyncio.LimitOverrunError:
        raise GateClientError("the response is larger than 64 MiB") from None
    except ConnectionError:
        return b""


def _response(line: bytes | memoryview, plain: int = LARGE_LINE) -> Response:
    if not line:
        raise GateClientError("server closed connection without response")
    try:
        return decode_response(line, plain)
    except ResponseError as error:
        raise GateClientError(
            f"the gate's answer could not be read by stringd {__version__}: {error}"
        ) from None

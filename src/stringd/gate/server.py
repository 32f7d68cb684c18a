"""The socket loop: accepts, checks who it is, collects one line each, and hands it to a thread.

Handshakes live here and cost a descriptor and a buffer, never a thread, so silent and trickling
peers hold up nobody. The 64 places in flight are taken only by requests that passed validation.
"""

import errno
import os
import selectors
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Final, Protocol

from stringd import __version__
from stringd.gate.case import GateCaller
from stringd.gate.errors import BusyError, CallerGoneError, os_text
from stringd.gate.peers import peer_of
from stringd.gate.question import AskingPeer
from stringd.gate.requests import RequestHandler
from stringd.gate.watch import Signal, Watch
from stringd.wire.gate import MAX_REQUEST_BYTES, Response, Status, encode_response
from stringd.wire.jsonlines import FramingError, LineReader

HANDSHAKE_SECONDS: Final = 10.0
# How often we look whether the socket, the log and the terminal are still there.
LOOK_SECONDS: Final = 1.0
WRITE_SECONDS: Final = 5.0
# Beyond this, whoever has most of them gives one up for whoever comes.
MAX_HANDSHAKES: Final = 128
# Four times what may be in flight: the rest are being read or refused, which takes a moment.
MAX_THREADS: Final = 256
# After an answer we read on a little, so that a peer still writing is not reset before it reads.
LINGER_SECONDS: Final = 1.0
LINGER_BYTES: Final = 4 * 1024 * 1024
# Beyond this a courtesy to those who leave would cost descriptors for those who come.
MAX_CONNECTIONS: Final = 512
_ACCEPT_PAUSE: Final = 0.05
# More at a time would keep those waiting who have spoken.
_ACCEPT_BATCH: Final = 32
_READ_BYTES: Final = 65_536
_WRITE_BYTES: Final = 16_384


class _GateConnection(Protocol):
    deadline: float

    def ready(self) -> None: ...
    def expired(self) -> None: ...


class Server:
    """Serves a listening socket until `leave` is called."""

    def __init__(
        self,
        listening: socket.socket,
        handler: RequestHandler,
        log: Callable[[str], None],
        look_around: Callable[[], None] = lambda: None,
    ) -> None:
        self._listening = listening
        self._look_around = look_around
        self._looked_at = time.monotonic()
        self._handler = handler
        self._log = log
        self._selector = selectors.DefaultSelector()
        # A pipe, because a signal handler below Python's writes single bytes.
        self._wakeup, self.alarm = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        """Whoever writes to the alarm ends the loop's wait."""
        self._returned: deque[socket.socket] = deque()
        # By process, each in the order of arrival.
        self._handshakes: dict[int, list[_Handshake]] = {}
        self._threads: set[threading.Thread] = set()
        self._leaving = False
        self.stopping = Signal()

    def leave(self) -> None:
        """End the loop soon. Safe from signal handlers and other threads."""
        self._leaving = True
        self._wake()

    @property
    def is_leaving(self) -> bool:
        """Whether `leave` was called."""
        return self._leaving

    def listen_on(self, listening: socket.socket) -> None:
        """Accept from another socket from now on. Only from within `look_around`."""
        self._selector.unregister(self._listening)
        self._listening = listening
        self._selector.register(listening, selectors.EVENT_READ, None)

    def run(self) -> None:
        """Accept and serve until `leave`, looking around every now and then."""
        self._selector.register(self._listening, selectors.EVENT_READ, None)
        self._selector.register(self._wakeup, selectors.EVENT_READ, None)
        while not self._leaving:
            self._turn()
        self._selector.unregister(self._listening)

    def drain(self, seconds: float) -> None:
        """Have everyone who waits answered with the shutdown, and see them off."""
        self.stopping.set()
        deadline = time.monotonic() + seconds
        for thread in list(self._threads):
            thread.join(max(0, deadline - time.monotonic()))
        self._see_off()
        for key in list(self._selector.get_map().values()):
            if key.data is not None:
                self.hang_up(key.fileobj)

    def close(self) -> None:
        """Give the loop's own descriptors back, after `drain`."""
        self._selector.close()
        os.close(self._wakeup)
        os.close(self.alarm)
        self.stopping.close()

    def _wake(self) -> None:
        # A full pipe wakes as well.
        with suppress(BlockingIOError):
            os.write(self.alarm, b"\0")

    def _turn(self) -> None:
        for key, _ in self._selector.select(self._patience()):
            if key.fileobj is self._listening:
                for _ in range(_ACCEPT_BATCH):
                    if not self._accept():
                        break
            elif key.fileobj == self._wakeup:
                os.read(self._wakeup, _READ_BYTES)
            else:
                key.data.ready()
        self._see_off()
        now = time.monotonic()
        for connection in self._connections():
            if connection.deadline <= now:
                connection.expired()
        if now >= self._looked_at + LOOK_SECONDS:
            self._looked_at = now
            self._look_around()

    def _see_off(self) -> None:
        while self._returned:
            self._linger(self._returned.popleft())

    def _connections(self) -> list[_GateConnection]:
        return [key.data for key in self._selector.get_map().values() if key.data is not None]

    def _patience(self) -> float:
        deadlines = [connection.deadline for connection in self._connections()]
        return max(0.0, min([self._looked_at + LOOK_SECONDS, *deadlines]) - time.monotonic())

    def _accept(self) -> bool:
        """Take the next connection; False when there is none to take now."""
        try:
            connection, _ = self._listening.accept()
        except BlockingIOError:
            return False
        except OSError as error:
            self._log(f"accept failed: {os_text(error)}")
            if error.errno in (errno.EMFILE, errno.ENFILE):
                time.sleep(_ACCEPT_PAUSE)
            return False
        connection.setblocking(False)
        peer = self._peer(connection)
        if peer is None:
            connection.close()
        elif self._handler.places.are_full:
            self.answer(connection, str(BusyError()))
        else:
            self._make_room()
            handshake = _Handshake(self, connection, peer)
            self._handshakes.setdefault(peer.pid, []).append(handshake)
            self._watch(connection, handshake)
        return True

    def _peer(self, connection: socket.socket) -> AskingPeer | None:
        """Who connected, if it may."""
        try:
            peer = peer_of(connection)
        except OSError as error:
            self._log(f"peer credential check failed: {os_text(error)}")
            return None
        if peer.uid != os.getuid():
            self._log(f"rejecting connection from uid {peer.uid} (expected {os.getuid()})")
            return None
        return peer

    @property
    def handshakes(self) -> int:
        """How many connections have not sent their line yet."""
        return sum(map(len, self._handshakes.values()))

    def _make_room(self) -> None:
        """Give up the oldest handshake of the process with most of them, if there are too many.

        So a crowd of silent peers takes places from itself, never from who comes and speaks.
        """
        if self.handshakes >= MAX_HANDSHAKES:
            max(self._handshakes.values(), key=len)[0].refuse(str(BusyError()))

    def serve_line(self, line: bytes, connection: socket.socket, peer: AskingPeer) -> None:
        """A handshake is complete: a thread takes the connection from here."""
        thread = threading.Thread(
            target=self._handle,
            args=(line, connection, peer, time.time_ns()),
            daemon=True,
            name=f"request from {peer.pid}",
        )
        if len(self._threads) >= MAX_THREADS:
            self.answer(connection, str(BusyError()))
            return
        self._threads.add(thread)
        try:
            thread.start()
        except RuntimeError as error:
            # The user's other programs may have taken every thread there is to have.
            self._threads.discard(thread)
            self._log(str(error))
            self.answer(connection, str(BusyError()))

    def end_handshake(
        self, handshake: "_Handshake", connection: socket.socket, peer: AskingPeer
    ) -> None:
        """The connection is no longer read here."""
        self._selector.unregister(connection)
        self._handshakes[peer.pid].remove(handshake)
        if not self._handshakes[peer.pid]:
            del self._handshakes[peer.pid]

    def answer(self, connection: socket.socket, message: str) -> None:
        """Refuse a connection whose request is not known, and see it off."""
        response = Response("", Status.ERROR, message=message, version=__version__)
        try:
            connection.send(b"".join(encode_response(response)))
        except OSError:
            connection.close()
            return
        self._linger(connection)

    def hang_up(self, connection: object) -> None:
        """Forget a connection that is registered here."""
        if isinstance(connection, socket.socket):
            self._selector.unregister(connection)
            connection.close()

    def _handle(
        self, line: bytes, connection: socket.socket, peer: AskingPeer, arrived: int
    ) -> None:
        answered = False

        def reply(response: Response) -> None:
            nonlocal answered
            answered = True
            _send(connection, encode_response(response))

        try:
            watch = Watch(connection, self.stopping)
            self._handler.handle(line, GateCaller(peer, watch, reply, arrived))
        except CallerGoneError:
            pass
        except Exception as error:  # noqa: BLE001  one request's crash must not take the gate along
            self._log(f"internal error: {error!r}")
            # A second answer would only make the first one, cut off, look whole.
            if not answered:
                reply(Response("", Status.ERROR, message="internal error", version=__version__))
        finally:
            self._returned.append(connection)
            self._wake()
            # Last, because whoever drains us waits for the threads that are still listed.
            self._threads.discard(threading.current_thread())

    def _linger(self, connection: socket.socket) -> None:
        if len(self._selector.get_map()) > MAX_CONNECTIONS:
            connection.close()
            return
        try:
            connection.shutdown(socket.SHUT_WR)
            connection.setblocking(False)
        except OSError:
            connection.close()
            return
        self._watch(connection, _Lingering(self, connection))

    def _watch(self, connection: socket.socket, data: _GateConnection) -> None:
        self._selector.register(connection, selectors.EVENT_READ, data)


class _Handshake:
    """A connection whose line is not complete."""

    def __init__(self, server: Server, connection: socket.socket, peer: AskingPeer) -> None:
        self._server = server
        self._connection = connection
        self._peer = peer
        self._reader = LineReader(MAX_REQUEST_BYTES)
        self._is_over = False
        self.deadline = time.monotonic() + HANDSHAKE_SECONDS

    def ready(self) -> None:
        if self._is_over:
            # It was given up after the loop had seen that there was something to read.
            return
        try:
            data = self._connection.recv(_READ_BYTES)
            if not data:
                self._reader.end()
                self._leave()
                self._connection.close()
                return
            line = self._reader.feed(data)
        except BlockingIOError:
            return
        except FramingError as error:
            self.refuse(f"read error: {error}")
        except OSError as error:
            self.refuse(f"read error: {os_text(error)}")
        else:
            self._take(line)

    def expired(self) -> None:
        self.refuse("handshake deadline exceeded")

    def _take(self, line: bytes | None) -> None:
        if line is None:
            return
        self._leave()
        if line:
            self._server.serve_line(line, self._connection, self._peer)
        else:
            # An empty line asks for nothing and gets nothing.
            self._connection.close()

    def refuse(self, message: str) -> None:
        """Answer with an error instead of waiting for the line."""
        self._leave()
        self._server.answer(self._connection, message)

    def _leave(self) -> None:
        self._is_over = True
        self._server.end_handshake(self, self._connection, self._peer)


class _Lingering:
    """An answered connection: what still comes is dropped until the peer closes or time is up."""

    def __init__(self, server: Server, connection: socket.socket) -> None:
        self._server = server
        self._connection = connection
        self._left = LINGER_BYTES
        self.deadline = time.monotonic() + LINGER_SECONDS

    def ready(self) -> None:
        try:
            data = self._connection.recv(_READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        self._left -= len(data)
        if not data or self._left <= 0:
            self._server.hang_up(self._connection)

    def expired(self) -> None:
        self._server.hang_up(self._connection)


def _send(connection: socket.socket, pieces: Iterable[bytes | memoryview]) -> None:
    """Write an answer; a caller who does not read it within the time has none."""
    try:
        connection.settimeout(WRITE_SECONDS)
        for piece in _joined(pieces):
            connection.sendall(piece)
    except OSError:
        return


def _joined(pieces: Iterable[bytes | memoryview]) -> Iterator[bytes | memoryview]:
    """The pieces with the small ones put together: most answers are one write."""
    small: list[bytes | memoryview] = []
    for piece in pieces:
        if len(piece) < _WRITE_BYTES:
            small.append(piece)
            continue
        if small:
            yield b"".join(small)
            small = []
        yield piece
    yield b"".join(small)

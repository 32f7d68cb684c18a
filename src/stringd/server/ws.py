"""`/ws`: one WebSocket connection between a socket and a runs client, on `websockets` sans I/O.

Frames queued in one loop turn leave in one write, those of many watchers less often. While the peer
does not read, nothing is taken from the client's outbox and nothing is read from the peer; what it
sent already waits as it came.
"""

import asyncio
import time
from collections import deque
from collections.abc import Iterable, Iterator
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, cast

from websockets.frames import CloseCode, Frame, Opcode
from websockets.http11 import Request
from websockets.protocol import State
from websockets.server import ServerProtocol

from stringd.server.deliveries import Deliveries
from stringd.server.http.rounds import Rounds
from stringd.server.ws_frames import FrameReader

if TYPE_CHECKING:
    from stringd.runs import RunService
    from stringd.server.http.budget import Place
    from stringd.system.lineage import Speaker

MAX_MESSAGE_BYTES: Final = 16 * 1024 * 1024
PING_SECONDS: Final = 20.0
"""A peer that sent nothing between two pings is taken for dead."""
CLOSE_SECONDS: Final = 2.0
"""How long a peer may take to answer our close."""
TURN_BYTES: Final = 32 * 1024
"""What is parsed at a time."""
TURN_MESSAGES: Final = 16
"""Messages of one packet that are handled before others get their turn."""
TURN_SECONDS: Final = 0.001
"""How long a turn of its own may take; there is one of them in each turn of the loop."""
WRITE_BYTES: Final = 64 * 1024
"""What is written at a time, so that the peer can say that it does not keep up."""
SHARED_BYTES: Final = 4 * 1024
"""Frames from this size on are not copied: clients that follow a run wait for the same bytes."""
UNREAD: Final = "Nothing was read for too long: connect again and subscribe with fromSeq"


def take_over(
    runs: "RunService",
    transport: asyncio.Transport,
    request: bytes,
    speaker: "Speaker | None" = None,
    place: "Place | None" = None,
    rounds: Rounds | None = None,
    deliveries: Deliveries | None = None,
) -> None:
    """Take an upgrading connection over: its transport, and its request once more."""
    connection = WebSocketConnection(runs, speaker, place, rounds, deliveries)
    transport.set_protocol(connection)
    connection.connection_made(transport)
    connection.data_received(request)


def _frame_head(size: int) -> bytes:
    if size < 126:
        return b"\x81%c" % size
    if size < 65536:
        return b"\x81\x7e" + size.to_bytes(2, "big")
    return b"\x81\x7f" + size.to_bytes(8, "big")


def text_frames(payloads: Iterable[bytes]) -> Iterator[bytes]:
    """Unfragmented text frames as a server sends them: unmasked, so the same for every client.

    They are written one after the other: small ones are joined, large payloads stay what they are.
    """
    joined: list[bytes] = []
    for payload in payloads:
        size = len(payload)
        joined += (_frame_head(size), payload)
        if size >= SHARED_BYTES:
            yield b"".join(joined[:-1])
            yield payload
            joined.clear()
    if joined:
        yield b"".join(joined)


class JoinedFrames:
    """The last frames that were joined: others who follow the same run are sent the same."""

    __slots__ = ("_joined", "_payloads")

    def __init__(self) -> None:
        self._payloads: list[bytes] = []
        self._joined: list[bytes] = []

    def of(self, payloads: list[bytes]) -> list[bytes]:
        """What `text_frames` makes of these payloads."""
        if payloads == self._payloads:
            return self._joined
        joined = list(text_frames(payloads))
        if len(joined) == 1:
            # Nothing large is kept.
            self._payloads, self._joined = payloads, joined
        return joined


_joined_frames: Final = JoinedFrames()


class WebSocketConnection(asyncio.Protocol):
    """The guard has let the peer in; from here on it is a client of the runs."""

    def __init__(
        self,
        runs: "RunService",
        speaker: "Speaker | None" = None,
        place: "Place | None" = None,
        rounds: Rounds | None = None,
        deliveries: Deliveries | None = None,
    ) -> None:
        self._place = place
        self._loop = asyncio.get_running_loop()
        self._rounds = rounds or Rounds(self._loop)
        self._deliveries = deliveries or Deliveries(self._loop)
        self._waits_for_turn = False
        self._protocol = ServerProtocol(max_size=MAX_MESSAGE_BYTES)
        self._frames = FrameReader(self._protocol)
        self._client = runs.connect(self._flush_soon, wake_later=self._flush_later, speaker=speaker)
        self._transport: asyncio.Transport
        self._unparsed = b""
        self._parts: list[bytes] = []
        self._text = True
        self._messages: deque[str | bytes] = deque()
        self._scheduled = False
        self._delivered_later = False
        self._paused = False
        self._deaf = False
        self._alive = True
        self._unread_bytes = 0
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._timer = self._loop.call_later(PING_SECONDS, self.look_after_peer)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        if self._timer is not None:
            self._timer.cancel()
        # What was sent before the end counts, also when its turn had not come.
        for message in self._messages:
            self._client.receive(message)
        self._messages.clear()
        self._unparsed = b""
        self._client.gone()
        if self._place is not None:
            self._place.leave()

    def pause_writing(self) -> None:
        self._paused = True
        self._listen()

    def resume_writing(self) -> None:
        self._paused = False
        self._alive = True
        self._flush_soon()

    def data_received(self, data: bytes) -> None:
        self._alive = True
        if self._unparsed or len(data) > TURN_BYTES:
            self._unparsed += data
            self._listen()
            self._ask_for_turn()
        else:
            self._parse(data)

    def _ask_for_turn(self) -> None:
        """Go on with what came when others have had their turn."""
        if not self._waits_for_turn:
            self._waits_for_turn = True
            self._rounds.add(self._take_turn)

    def _take_turn(self) -> None:
        self._waits_for_turn = False
        if self._paused or self._transport.is_closing():
            return
        if self._unparsed and not self._messages and not self._client.full:
            self._parse(self._next_piece())
        else:
            self._hand_over(time.perf_counter() + TURN_SECONDS)

    def _next_piece(self) -> bytes:
        data = self._unparsed
        self._unparsed = data[TURN_BYTES:]
        return data[:TURN_BYTES]

    def _parse(self, data: bytes) -> None:
        for event in self._frames.read(data):
            if isinstance(event, bytes):
                self._text = True
                self._deliver(event)
            elif isinstance(event, Request):
                self._accept(event)
            elif isinstance(event, Frame):
                self._receive(event)
        self._hand_over()
        self._send_protocol_data()

    def _hand_over(self, until: float = 0.0) -> None:
        """Give the client what came, as long as it and its peer keep up; some, or `until` then."""
        left = TURN_MESSAGES
        while self._messages and not self._paused and not self._client.full:
            self._client.receive(self._messages.popleft())
            left -= 1
            if left <= 0 and time.perf_counter() >= until:
                break
        if (self._messages or self._unparsed) and not self._client.full:
            self._ask_for_turn()
        self._listen()

    def _listen(self) -> None:
        """Read on, unless there is something to be done first."""
        deaf = self._paused or bool(self._messages or self._unparsed) or self._client.full
        if deaf is not self._deaf and not self._transport.is_closing():
            self._deaf = deaf
            if deaf:
                self._transport.pause_reading()
            else:
                self._alive = True
                self._transport.resume_reading()

    def eof_received(self) -> None:
        self._protocol.receive_eof()
        self._send_protocol_data()

    def _accept(self, request: Request) -> None:
        if request.headers.get("X-Stringd-Client") == "program":
            self._client.kind = "program"
        response = self._protocol.accept(request)
        if response.status_code != HTTPStatus.SWITCHING_PROTOCOLS:
            response = self._protocol.reject(HTTPStatus.BAD_REQUEST, "WebSocket upgrade failed")
        self._protocol.send_response(response)

    def _receive(self, frame: Frame) -> None:
        if frame.opcode in (Opcode.TEXT, Opcode.BINARY):
            self._text = frame.opcode is Opcode.TEXT
            self._parts = [bytes(frame.data)]
        elif frame.opcode is Opcode.CONT:
            self._parts.append(bytes(frame.data))
        else:
            return
        if frame.fin:
            message, self._parts = b"".join(self._parts), []
            self._deliver(message)

    def _deliver(self, message: bytes) -> None:
        try:
            self._messages.append(message.decode() if self._text else message)
        except UnicodeDecodeError:
            self._protocol.fail(CloseCode.INVALID_DATA, "text is not UTF-8")

    def _flush_soon(self) -> None:
        if not self._scheduled and not self._paused:
            self._scheduled = True
            self._loop.call_soon(self._flush)

    def _flush_later(self) -> None:
        """Write with the others who were told the same."""
        if not self._scheduled and not self._delivered_later and not self._paused:
            self._delivered_later = True
            self._deliveries.add(self._deliver_later)

    def _deliver_later(self) -> None:
        self._delivered_later = False
        self._flush()

    def _flush(self) -> None:
        self._scheduled = False
        if self._paused or self._transport.is_closing():
            return
        frames = self._client.take(WRITE_BYTES)
        if frames and self._protocol.state is State.OPEN:
            self._transport.writelines(_joined_frames.of(frames))
        if self._messages or self._unparsed:
            self._ask_for_turn()
        else:
            self._listen()
        if self._client.waiting:
            self._flush_soon()
        elif self._client.closing:
            self._close(CloseCode.GOING_AWAY, "Server shutting down")

    def _close(self, code: CloseCode, reason: str) -> None:
        if self._protocol.state is State.OPEN:
            self._protocol.send_close(code, reason)
            self._send_protocol_data()
            self._loop.call_later(CLOSE_SECONDS, self._transport.abort)

    def _send_protocol_data(self) -> None:
        for data in self._protocol.data_to_send():
            if data:
                self._transport.write(data)
            else:
                self._transport.close()

    def look_after_peer(self) -> None:
        """Ask whether the peer is there; end the connection when it shows no sign of life."""
        if self._paused:
            left = self._transport.get_write_buffer_size()
            # As much may be left by chance of one that has read all that was there before.
            reads = self._alive or left != self._unread_bytes
            self._alive, self._unread_bytes = False, left
            if not reads:
                self._close(CloseCode.TRY_AGAIN_LATER, UNREAD)
                return
        elif not self._alive and not self._deaf:
            self._transport.abort()
            return
        else:
            self._alive = False
            if self._protocol.state is State.OPEN:
                self._protocol.send_ping(b"")
                self._send_protocol_data()
        self._timer = self._loop.call_later(PING_SECONDS, self.look_after_peer)

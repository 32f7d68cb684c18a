"""Frames read by us and frames read by the protocol: the same events for the same bytes."""

import random
from typing import Final

import pytest
from websockets.frames import Frame, Opcode
from websockets.http11 import Request
from websockets.protocol import Event, State
from websockets.server import ServerProtocol

from stringd.server.ws_frames import FrameReader

UPGRADE: Final = (
    b"GET /ws HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
)
Seen = tuple[list[tuple[int, bool, bytes]], State]


def read(pieces: list[bytes], *, ours: bool) -> Seen:
    """What came of these pieces, and the state of the connection then."""
    protocol = ServerProtocol(max_size=100_000)
    reader, seen = FrameReader(protocol), []
    for piece in [UPGRADE, *pieces]:
        events: list[Event | bytes] = []
        if ours:
            for event in reader.read(piece):
                accept(protocol, event)
                events.append(event)
        else:
            protocol.receive_data(piece)
            events += protocol.events_received()
            for event in events:
                accept(protocol, event)
        for event in events:
            if isinstance(event, bytes):
                seen.append((int(Opcode.TEXT), True, event))
            elif isinstance(event, Frame):
                seen.append((int(event.opcode), event.fin, bytes(event.data)))
    return seen, protocol.state


def accept(protocol: ServerProtocol, event: Event | bytes) -> None:
    if isinstance(event, Request):
        protocol.send_response(protocol.accept(event))


def random_frames(chance: random.Random) -> bytes:
    sent, fragmented = b"", False
    for _ in range(chance.randint(1, 8)):
        kind, size = chance.random(), chance.choice([0, 1, 5, 125, 126, 300, 5_000])
        if kind < 0.6:
            opcode = Opcode.CONT if fragmented and chance.random() < 0.9 else Opcode.TEXT
            frame, fragmented = Frame(opcode, b"a" * size), False
        elif kind < 0.75:
            opcode = Opcode.CONT if fragmented else Opcode.BINARY
            frame, fragmented = Frame(opcode, chance.randbytes(size), fin=False), True
        elif kind < 0.95:
            frame = Frame(Opcode.PING, chance.randbytes(size % 126))
        else:
            frame = Frame(Opcode.CLOSE, b"\x03\xe8")
        sent += frame.serialize(mask=chance.random() < 0.98)
        if chance.random() < 0.02:
            sent += chance.randbytes(3)
    return sent


def test_the_events_are_those_of_the_protocol_however_the_bytes_are_cut() -> None:
    chance = random.Random(20_261_118)
    for _ in range(1_500):
        sent = random_frames(chance)
        cuts = sorted(chance.randint(0, len(sent)) for _ in range(chance.randint(0, 6)))
        ends = zip([0, *cuts], [*cuts, len(sent)], strict=True)
        pieces = [sent[begin:end] for begin, end in ends if begin < end]
        assert read(pieces, ours=True) == read(pieces, ours=False)


@pytest.mark.parametrize("size", [0, 1, 125, 126, 65_535, 65_536])
def test_a_text_of_any_size_arrives_byte_by_byte_as_it_was_sent(size: int) -> None:
    sent = Frame(Opcode.TEXT, b"x" * size).serialize(mask=True)
    pieces = [sent[at : at + 1] for at in range(16)] + [sent[16:]]
    assert read([each for each in pieces if each], ours=True) == (
        [(int(Opcode.TEXT), True, b"x" * size)],
        State.OPEN,
    )

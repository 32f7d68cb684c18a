"""Texts as bytes between the daemon and a worker: a count, then each text behind its length."""

import socket
import struct
from collections.abc import Iterable
from time import monotonic
from typing import Final

_NUMBER: Final = struct.Struct(">Q")
_READ_BYTES: Final = 1024 * 1024


def pack(texts: Iterable[str]) -> bytes:
    """Any texts, lone surrogates included, as one frame."""
    parts = [text.encode("utf-8", "surrogatepass") for text in texts]
    pieces = [_NUMBER.pack(len(parts))]
    for part in parts:
        pieces += (_NUMBER.pack(len(part)), part)
    return b"".join(pieces)


def receive(connection: socket.socket, seconds: float | None = None) -> list[str]:
    """The texts of the next frame. Raises `EOFError`, `TimeoutError` or another `OSError`."""
    end = None if seconds is None else monotonic() + seconds
    (count,) = _NUMBER.unpack(_exactly(connection, _NUMBER.size, end))
    texts = []
    for _ in range(count):
        (size,) = _NUMBER.unpack(_exactly(connection, _NUMBER.size, end))
        texts.append(_exactly(connection, size, end).decode("utf-8", "surrogatepass"))
    return texts


def _exactly(connection: socket.socket, size: int, end: float | None) -> bytes:
    data = bytearray()
    while len(data) < size:
        if end is not None:
            left = end - monotonic()
            if left <= 0:
                raise TimeoutError
            connection.settimeout(left)
        piece = connection.recv(min(_READ_BYTES, size - len(data)))
        if not piece:
            raise EOFError
        data += piece
    return bytes(data)

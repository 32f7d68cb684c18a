"""The broadcasts of a run in pieces of bounded size, for readers who may take their time.

A frame may be megabytes and a thousand readers may stop in the middle of one: between two pieces
nothing of it is held, and its rest is read from the file again.
"""

import logging
from collections.abc import Iterable, Iterator
from typing import BinaryIO, Final

from stringd.runs.record.frames import frame_number

PIECE_BYTES: Final = 64 * 1024

log = logging.getLogger(__name__)


def kept_pieces(path: str) -> Iterator[bytes]:
    """The lines of a file that are frames, each with its newline, cut or joined into pieces."""
    try:
        with open(path, "rb") as file:
            yield from _pieces(file)
    except FileNotFoundError:
        return
    except OSError as error:
        log.error("cannot read %s: %s", path, error)


def held_pieces(frames: Iterable[bytes]) -> Iterator[bytes]:
    """Frames that are in memory anyway, each with a newline, cut into pieces."""
    for frame in frames:
        for at in range(0, len(frame), PIECE_BYTES):
            yield frame[at : at + PIECE_BYTES]
        yield b"\n"


def _pieces(file: BinaryIO) -> Iterator[bytes]:
    short = bytearray()
    end = 0
    while line := file.readline():
        start, end = end, end + len(line)
        if frame_number(line) is None:
            continue
        if len(line) <= PIECE_BYTES:
            short += line.rstrip(b"\n") + b"\n"
            if len(short) < PIECE_BYTES:
                continue
        if short:
            piece, short = bytes(short), bytearray()
            yield piece
            del piece
        if end - start > PIECE_BYTES:
            whole = line.endswith(b"\n")
            del line
            yield from _cut(file, start, end)
            if not whole:
                yield b"\n"
    if short:
        yield bytes(short)


def _cut(file: BinaryIO, start: int, end: int) -> Iterator[bytes]:
    for at in range(start, end, PIECE_BYTES):
        file.seek(at)
        yield file.read(min(PIECE_BYTES, end - at))
    file.seek(end)

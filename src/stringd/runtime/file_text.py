"""The content of a file, as bytes and as text that survives a round trip."""

import hashlib
from codecs import BOM_UTF8
from typing import NamedTuple


class FileText(NamedTuple):
    """A file as text. Bytes that are no UTF-8 come back unchanged when it is written."""

    text: str
    """Without the byte order mark, which is no text."""
    data: bytes
    """The bytes of the file."""
    mode: int
    marked: bool = False
    """Whether the file starts with a byte order mark."""
    binary: bool = False


def digest(data: bytes) -> bytes:
    """What identifies a file's content."""
    return hashlib.sha256(data).digest()


def encode(text: str, *, marked: bool = False) -> bytes:
    """Text as a file holds it, below a byte order mark if the file had one."""
    data = text.encode("utf-8", "surrogateescape")
    return BOM_UTF8 + data if marked and not data.startswith(BOM_UTF8) else data


def decode(data: bytes) -> str:
    """A file's bytes as text, lossless for `encode`."""
    return data.decode("utf-8", "surrogateescape")
